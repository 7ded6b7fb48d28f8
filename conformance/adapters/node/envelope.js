'use strict';
// Sections 2, 3 and 5: what is around the encrypted bytes, and what tells files in plaintext.
const { Refusal, decodeBase64 } = require('./common');
const { JsonNumber, JsonObject, parseObject } = require('./json');

const VERSION = 'v0';

// E3: the object of an encrypted file, or null if the file is taken for plaintext.
function parseEnvelope(file) {
  const object = parseObject(file);
  const version = object?.get('encryption_version');
  return typeof version === 'string' && version !== '' ? object : null;
}

// readEnvelope gives meta and the encrypted bytes.
function readEnvelope(envelope, isState) {
  if (envelope.get('encryption_version') !== VERSION) throw new Refusal('another encryption_version than v0'); // E4
  if (isState) identity(envelope);
  const meta = envelope.get('meta') ?? new JsonObject(); // E5
  if (!(meta instanceof JsonObject)) throw new Refusal('meta is no object');
  return { meta, data: decodeBase64(envelope.get('encrypted_data')) }; // E6
}

// S2, S3: the serial, as text, and the lineage of an object; null if there is none.
function identity(object) {
  const serial = object.get('serial') ?? null;
  const lineage = object.get('lineage') ?? null;
  if (serial !== null && !(serial instanceof JsonNumber && serial.isInteger)) throw new Refusal('serial is no integer');
  if (lineage !== null && typeof lineage !== 'string') throw new Refusal('lineage is no string');
  return { serial: serial && BigInt(serial.text).toString(), lineage: lineage || null };
}

// The checks after decryption. What is outside is believed only here (A1).
function checkState(envelope, plaintext) {
  const state = parseObject(plaintext);
  if (!state) throw new Refusal('the plaintext is no state'); // S7
  const outside = identity(envelope);
  const inside = identity(state);
  if (outside.serial !== null && outside.serial !== inside.serial) throw new Refusal('serial differs from that of the plaintext'); // S4
  if (outside.lineage !== null && outside.lineage !== inside.lineage) throw new Refusal('lineage differs from that of the plaintext'); // S5
}

// F1, for settings that allow plaintext.
function isPlaintext(file, isState) {
  if (!isState) return file.subarray(0, 2).toString('latin1') === 'PK';
  const version = parseObject(file)?.get('terraform_version');
  return typeof version === 'string' && version !== '';
}

// W2, W3: compact JSON, in the order of E2. state is the plaintext as an object, and null for a plan.
function writeEnvelope(state, meta, data) {
  const { serial, lineage } = state ? identity(state) : { serial: null, lineage: null };
  const members = [
    serial !== null && `"serial":${serial}`,
    lineage !== null && `"lineage":${JSON.stringify(lineage)}`,
    `"meta":{${[...meta].map(([name, value]) => `${JSON.stringify(name)}:"${value}"`)}}`,
    `"encrypted_data":"${data.toString('base64')}"`, // W6
    `"encryption_version":"${VERSION}"`,
  ];
  return Buffer.from(`{${members.filter(Boolean)}}`);
}

module.exports = { checkState, isPlaintext, parseEnvelope, readEnvelope, writeEnvelope };
