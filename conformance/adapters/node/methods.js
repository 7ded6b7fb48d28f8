'use strict';
// Section 9: methods.
const { createCipheriv, createDecipheriv, randomBytes } = require('crypto');
const { DoesNotFit, Refusal, decodeBase64 } = require('./common');
const { decryptionKey, encryptionKey, referredKey } = require('./keys');
const { members, run } = require('./program');

const NONCE = 12;
const TAG = 16;

// The key of a method: null if it has none, and undefined if it needs none.
function keyOf({ args }, literal, ask) {
  const keys = args.get('keys') ?? null;
  return keys === null ? undefined : referredKey(keys, literal, ask);
}

// The name of the cipher for a key, and M1: a key of another length is a failure of the set-up.
function cipher(key) {
  if (![16, 24, 32].includes(key.length)) throw new Refusal(`AES has no keys of ${key.length} bytes`);
  return `aes-${key.length * 8}-gcm`;
}

// M11: one run of a program of the method external.
function transform(command, key, payload) {
  const input = JSON.stringify({ key: key?.toString('base64'), payload: payload.toString('base64') });
  const [result] = members(run(command, input, 'OpenTofu-External-Encryption-Method'), command[0], ['payload']);
  return decodeBase64(result);
}

function decrypt(blocks, method, meta, asked, data) {
  const { path, type, args } = method;
  const key = keyOf(method, 'decryption_key', (provider) => decryptionKey(blocks, provider, meta, asked));
  if (key === null) throw new DoesNotFit(`${path} has no key for the file`); // M6, M12
  if (type === 'external') {
    if (data.length === 0) throw new DoesNotFit(`${path}: no data`); // M12
    try {
      return transform(args.get('decrypt_command'), key, data);
    } catch (error) {
      throw error instanceof Refusal ? new DoesNotFit(`${path}: ${error.message}`) : error; // M12
    }
  }
  const name = cipher(key);
  if (data.length < NONCE + TAG) throw new DoesNotFit(`${path}: the data is too short`); // M5
  const decipher = createDecipheriv(name, key, data.subarray(0, NONCE), { authTagLength: TAG });
  decipher.setAAD(Buffer.from(args.get('aad') ?? [])); // M3
  decipher.setAuthTag(data.subarray(-TAG));
  const plaintext = decipher.update(data.subarray(NONCE, -TAG));
  try { decipher.final(); } catch { throw new DoesNotFit(`${path}: authentication fails`); } // M4
  return plaintext;
}

function encrypt(blocks, method, meta, plaintext) {
  const { path, type, args } = method;
  const key = keyOf(method, 'encryption_key', (provider) => encryptionKey(blocks, provider, meta));
  if (key === null) throw new Refusal(`${path} has no encryption key`);
  if (type === 'external') return transform(args.get('encrypt_command'), key, plaintext);
  const nonce = randomBytes(NONCE); // W7
  const encipher = createCipheriv(cipher(key), key, nonce, { authTagLength: TAG });
  encipher.setAAD(Buffer.from(args.get('aad') ?? [])); // M3
  return Buffer.concat([nonce, encipher.update(plaintext), encipher.final(), encipher.getAuthTag()]); // M2
}

module.exports = { decrypt, encrypt };
