'use strict';
// A reader and a writer of OpenTofu's encrypted states and plans, for programs in Node: only its own modules, and
// nothing but the rules of FORMAT.md, which comments name. It is no product: see the limits in settings.js and hcl.js.
const { readFileSync } = require('fs');
const { checkState, isPlaintext, parseEnvelope, readEnvelope, writeEnvelope } = require('./envelope');
const { DoesNotFit, Refusal, Unsupported } = require('./common');
const { parseObject } = require('./json');
const { decrypt, encrypt } = require('./methods');
const { load } = require('./settings');

// Section 7: the order of trying.
function read(file, { blocks, methods }, isState) {
  const envelope = parseEnvelope(file);
  if (!envelope) {
    if (methods && !isPlaintext(file, isState)) throw new Refusal('neither encrypted, nor what was asked for in plaintext'); // F1
    if (methods && !methods.some(({ type }) => type === 'unencrypted')) throw new Refusal('the file is not encrypted'); // F3
    return file; // F3, F4
  }
  if (!methods) throw new Refusal('the file is encrypted, and there are no settings for it'); // F4
  const { meta, data } = readEnvelope(envelope, isState);
  const asked = new Set();
  const reasons = [];
  for (const method of methods) {
    if (method.type === 'unencrypted') continue; // T2
    let plaintext;
    try {
      plaintext = decrypt(blocks, method, meta, asked, data);
    } catch (error) {
      if (!(error instanceof DoesNotFit)) throw error; // T5: at once, as OpenTofu
      reasons.push(error.message);
      continue; // T4
    }
    if (isState) checkState(envelope, plaintext); // T8
    return plaintext;
  }
  throw new Refusal(['no method opens the file', ...reasons].join('; ')); // T2, T9
}

// Section 11: writers. W10: whatever fails ends it.
function write(plaintext, { blocks, methods }, isState) {
  const state = isState ? parseObject(plaintext) : null;
  if (isState && !state) throw new Refusal('this is no state'); // W12
  if (parseEnvelope(plaintext)) throw new Refusal('this is encrypted already'); // W12
  const method = methods?.[0]; // W1
  if (!method || method.type === 'unencrypted') return plaintext;
  const meta = new Map();
  const data = encrypt(blocks, method, meta, plaintext); // W4
  return writeEnvelope(state, meta, data);
}

function main({ env }) {
  if (!['opentofu_state', 'opentofu_plan'].includes(env.CASE_KIND)) throw new Unsupported('other files than those of OpenTofu');
  const task = env.CASE_TASK === 'write' ? write : read;
  process.stdout.write(task(readFileSync(0), load(env), env.CASE_KIND === 'opentofu_state'));
}

try {
  main(process);
} catch (error) {
  const known = error instanceof Refusal || error instanceof Unsupported;
  process.stderr.write(`${known ? error.message : error.stack}\n`);
  process.exitCode = error instanceof Refusal ? 1 : known ? 77 : 2; // 2: a mistake in this program, which must not look like a refusal
}
