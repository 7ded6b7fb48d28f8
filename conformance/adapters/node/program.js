'use strict';
// The protocol of external programs: K40 to K44, M10, M11.
const { spawnSync } = require('child_process');
const { Refusal } = require('./common');
const { JsonNumber, JsonObject, parse } = require('./json');

// run starts the command, and gives the value that it answers.
function run([command, ...args], input, magic) {
  const { error, status, stdout } = spawnSync(command, args, {
    input, stdio: ['pipe', 'pipe', 'inherit'], timeout: 60000, maxBuffer: 256 << 20, // K44, L2
  });
  // A program need not read its input, so that a pipe which it has closed is no failure.
  if ((error && error.code !== 'EPIPE') || status !== 0) throw new Refusal(`${command}: ${error?.message ?? `it ended with ${status}`}`);
  const text = stdout.toString();
  const end = text.indexOf('\n') + 1;
  const header = parse(text.slice(0, end)); // K42
  const version = header instanceof JsonObject ? header.get('version') : null;
  if (!(version instanceof JsonNumber) || version.text !== '1' || header.get('magic') !== magic) {
    throw new Refusal(`${command}: it does not speak the protocol ${magic}, version 1`);
  }
  return parse(text.slice(end), { first: true }); // K43
}

// members gives the values of an object with these members and no others (K43). A name that ends with ? may be missing.
function members(value, where, names) {
  if (!(value instanceof JsonObject)) throw new Refusal(`${where}: an object was expected`);
  const known = names.map((name) => name.replace('?', ''));
  for (const [name] of value.entries) if (!known.includes(name)) throw new Refusal(`${where}: unknown member ${name}`);
  for (const name of names) if (!name.endsWith('?') && !value.has(name)) throw new Refusal(`${where}: no ${name}`);
  return known.map((name) => value.get(name));
}

module.exports = { members, run };
