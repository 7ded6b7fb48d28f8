'use strict';
// Section 8: key providers. Keys are buffers, or null if there is none.
const { pbkdf2Sync, randomBytes } = require('crypto');
const { Refusal, Unsupported, decodeBase64 } = require('./common');
const { JsonNumber, JsonObject, parseObject, stringify } = require('./json');
const { members, run } = require('./program');

const MAX_WORK = 10_000_000; // L1
const MAX_BYTES = 1024; // L1: of keys and salts
const MAGIC = 'Hello world!'; // K20

// K17: the password is the passphrase, or another key.
function derive({ path, args }, password, { salt, iterations, key_length: length, hash_function: hash }) {
  if (args.get('chain') && !(password?.length >= 16)) throw new Refusal(`${path}: the key of its chain is too short`);
  const work = iterations * Math.ceil(length / (hash === 'sha512' ? 64 : 32));
  if (work > MAX_WORK || Math.max(length, salt.length) > MAX_BYTES) throw new Refusal(`${path}: more work than this program does`);
  return pbkdf2Sync(password, salt, iterations, length, hash); // K13
}

// C5, C6: ask gives the key of a key provider; literal names that of an object in its place.
function referredKey(keys, literal, ask) {
  if (!(keys instanceof Map)) return ask(keys.path);
  const bytes = keys.get(literal);
  return bytes?.length ? Buffer.from(bytes) : null;
}

// decryptionKey asks a key provider for the key that meta, the object of the envelope, describes. asked has the
// metadata keys of all key providers that were asked for this file, also by methods that were tried before.
function decryptionKey(blocks, path, meta, asked) {
  const provider = blocks.get(path);
  const { type, args, metadataKey } = provider;
  if (asked.has(metadataKey)) throw new Refusal(`two key providers have the metadata key ${metadataKey}`); // T7
  asked.add(metadataKey);
  const stored = meta.has(metadataKey) ? parseObject(decodeBase64(meta.get(metadataKey))) : undefined;
  if (stored === null) throw new Refusal(`the metadata of ${path} is no JSON object`); // K2
  const ask = (name) => referredKey(args.get(name), 'decryption_key', (other) => decryptionKey(blocks, other, meta, asked));
  if (type === 'external') return externalKeys(provider, stored).decryption;
  if (type === 'static') return stored && isStatic(stored) ? Buffer.from(args.get('key'), 'hex') : null;
  if (type === 'xor') return xor(provider, ask('a'), ask('b'));
  if (type !== 'pbkdf2') throw new Unsupported(`key providers of type ${type} are not supported`);
  const password = args.get('chain') ? ask('chain') : Buffer.from(args.get('passphrase'));
  const parameters = stored && pbkdf2Metadata(stored);
  return password && parameters ? derive(provider, password, parameters) : null; // K3, K18
}

// K12, K15, K16. Gives null if there is no key; K14: whatever the settings say.
function pbkdf2Metadata(stored) {
  const number = (name) => {
    const value = stored.get(name) ?? new JsonNumber('0');
    if (!(value instanceof JsonNumber && value.isInteger)) throw new Refusal(`metadata: a bad ${name}`); // K2
    return Number(value.text);
  };
  const hash = stored.get('hash_function') ?? '';
  const salt = decodeBase64(stored.get('salt') ?? '');
  const result = { salt, iterations: number('iterations'), key_length: number('key_length'), hash_function: hash };
  if (!salt.length || !result.iterations || !result.key_length || hash === '') return null; // K15
  if (!['sha512', 'sha256'].includes(hash)) throw new Refusal('metadata: an unknown hash function'); // K16
  if (result.iterations < 0 || result.key_length < 0) throw new Refusal('metadata: a negative number');
  return result;
}

// K20: without a magic, there is no key.
function isStatic(stored) {
  const magic = stored.get('magic') ?? '';
  if (magic !== '' && magic !== MAGIC) throw new Refusal('metadata: another magic');
  return magic !== '';
}

// K25: of two keys, or null if one of them is not there.
function xor({ path }, a, b) {
  if (!a || !b) return null;
  if (a.length !== b.length) throw new Refusal(`${path}: its keys differ in length`);
  return Buffer.from(a.map((byte, i) => byte ^ b[i]));
}

// K41 to K45. stored is the metadata of the file, and undefined if there is none.
function externalKeys({ path, args }, stored) {
  const data = stored?.get('external_data') ?? null;
  if (data !== null && !(data instanceof JsonObject)) throw new Refusal(`metadata: bad external_data of ${path}`); // K2
  const input = data === null ? 'null' : `{"external_data":${stringify(data)}}`;
  const [keys, meta] = members(run(args.get('command'), input, 'OpenTofu-External-Key-Provider'), path, ['keys', 'meta']);
  const [encryption, decryption] = members(keys, path, ['encryption_key', 'decryption_key?']);
  const [external] = members(meta, path, ['external_data']);
  if (external !== null && !(external instanceof JsonObject)) throw new Refusal(`${path}: external_data is no object`);
  return {
    encryption: decodeBase64(encryption),
    decryption: decryption ? decodeBase64(decryption) : null,
    metadata: stringify(meta),
  };
}

// encryptionKey makes the key for a new file, and adds what has to be stored to meta, a Map (W5).
function encryptionKey(blocks, path, meta) {
  const provider = blocks.get(path);
  const { type, args, metadataKey } = provider;
  const store = (metadata) => {
    if (meta.has(metadataKey)) throw new Refusal(`two key providers have the metadata key ${metadataKey}`); // W11
    meta.set(metadataKey, Buffer.from(metadata).toString('base64'));
  };
  const ask = (name) => referredKey(args.get(name), 'encryption_key', (other) => encryptionKey(blocks, other, meta));
  if (type === 'external') {
    const { encryption, metadata } = externalKeys(provider, undefined);
    store(metadata);
    return encryption;
  }
  if (type === 'static') {
    store(JSON.stringify({ magic: MAGIC }));
    return Buffer.from(args.get('key'), 'hex');
  }
  if (type === 'xor') return xor(provider, ask('a'), ask('b'));
  if (type !== 'pbkdf2') throw new Unsupported(`key providers of type ${type} are not supported`);
  const password = args.get('chain') ? ask('chain') : Buffer.from(args.get('passphrase'));
  const parameters = { // W8
    salt: randomBytes(Math.min(args.get('salt_length') ?? 32, MAX_BYTES + 1)), // derive refuses one that is too long
    iterations: args.get('iterations') ?? 600000,
    hash_function: args.get('hash_function') ?? 'sha512',
    key_length: args.get('key_length') ?? 32,
  };
  store(JSON.stringify({ ...parameters, salt: parameters.salt.toString('base64') })); // K12
  return derive(provider, password, parameters);
}

module.exports = { decryptionKey, encryptionKey, referredKey };
