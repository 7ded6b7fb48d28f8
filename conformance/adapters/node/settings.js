'use strict';
// Section 6: from the text of settings to the methods of a target.
const { Refusal } = require('./common');
const { Reference, readBody } = require('./hcl');

// C2: the arguments of each block (null: by its type), and its blocks, each with the number of labels.
const FALLBACK = { args: ['method'], blocks: {} };
FALLBACK.blocks.fallback = [0, FALLBACK];
const TARGET = { args: ['enforced', 'method'], blocks: FALLBACK.blocks };
const BY_TYPE = [2, { args: null, blocks: {} }];
const REMOTE = { args: [], blocks: { default: [0, FALLBACK], remote_state_data_source: [1, FALLBACK] } };
const blocks = { key_provider: BY_TYPE, method: BY_TYPE, state: [0, TARGET], plan: [0, TARGET], remote_state_data_sources: [0, REMOTE] };
const ROOT = { args: [], blocks };

// The rules for arguments. Each gets the value, which is set.
const isInteger = (from, to = Infinity) => (value) => Number.isInteger(value) && value >= from && value <= to;
const isBytes = (value) => Array.isArray(value) && value.every(isInteger(0, 255));
const isKey = (value) => value instanceof Reference;
const isCommand = (value) => Array.isArray(value) && Boolean(value[0]) && value.every((word) => typeof word === 'string');
// C6: a reference, or an object with one or two lists of bytes.
const isKeys = (value) => isKey(value) || (value instanceof Map && isBytes(value.get('encryption_key'))
  && isBytes(value.get('decryption_key') ?? []) && [...value.keys()].every((name) => /^(en|de)cryption_key$/.test(name)));

// The types, each with its arguments; a name that ends with ! is required. null: a key service, whose arguments this
// program does not check, since it cannot ask it.
const TYPES = {
  key_provider: {
    pbkdf2: {
      passphrase: (value) => value === '' || (typeof value === 'string' && Buffer.byteLength(value) >= 16), // K10: bytes; K11
      chain: isKeys,
      iterations: isInteger(200000),
      key_length: isInteger(1),
      salt_length: isInteger(1),
      hash_function: (value) => value === 'sha512' || value === 'sha256',
    },
    external: { 'command!': isCommand }, // K40
    static: { 'key!': (value) => typeof value === 'string' && /^([0-9a-fA-F]{2})+$/.test(value) }, // K20
    xor: { 'a!': isKey, 'b!': isKey }, // K25
    aws_kms: null, gcp_kms: null, azure_vault: null, openbao: null,
  },
  method: {
    aes_gcm: { 'keys!': isKeys, aad: isBytes }, // M3
    external: { 'encrypt_command!': isCommand, 'decrypt_command!': isCommand, keys: isKeys }, // M10
    unencrypted: {}, // M20
  },
};

// C5: who refers to keys may do so in several ways. What is no reference stays as it is.
function toKey(name, value, json) {
  if (value instanceof Reference && !value.path.startsWith('key_provider.')) throw new Refusal(`settings: ${name} is no key provider`);
  if (typeof value !== 'string' || (name !== 'keys' && !json)) return value;
  if (!/^key_provider\.[\w-]+\.[\w-]+$/.test(value)) throw new Refusal(`settings: ${name} is no key provider`);
  return new Reference(value, false);
}

// C4: a reference, in JSON a string.
function toMethod({ json, args }) {
  const value = args.get('method');
  if (value === undefined || value === null) throw new Refusal('settings: a target or a fallback without a method'); // C9, C13
  const path = json ? value : value instanceof Reference && !value.template && value.path;
  if (typeof path !== 'string' || !/^method\.[\w-]+\.[\w-]+$/.test(path)) throw new Refusal('settings: method is no reference to a method');
  return path;
}

function atMostOne(blocks, type) {
  const found = blocks.filter((block) => block.type === type);
  if (found.length > 1) throw new Refusal(`settings: more than one ${type}`);
  return found[0]?.body;
}

function toTarget(body) {
  const chain = (inner) => (inner ? [toMethod(inner), ...chain(atMostOne(inner.blocks, 'fallback'))] : []);
  const [method, ...fallbacks] = chain(body);
  const enforced = body.args.get('enforced') ?? false;
  if (typeof enforced !== 'boolean') throw new Refusal('settings: enforced is neither true nor false');
  return { enforced, method, fallbacks };
}

function toBlock(path, kind, type, { json, args }) {
  const isKnown = /^\w+(\.[\w-]+){2}$/.test(path) && Object.hasOwn(TYPES[kind], type);
  if (!isKnown) throw new Refusal(`settings: ${path}: unknown type, or a bad name`); // C3
  for (const name of ['keys', 'chain', 'a', 'b']) if (args.has(name)) args.set(name, toKey(name, args.get(name), json));
  if (kind === 'method') return { path, kind, type, args };
  const alias = args.get('encrypted_metadata_alias') ?? '';
  if (typeof alias !== 'string') throw new Refusal(`settings: ${path}: the alias is no text`);
  args.delete('encrypted_metadata_alias');
  return { path, kind, type, args, metadataKey: alias || path }; // K1
}

// Settings are Maps: blocks by their paths, such as method.aes_gcm.m, and targets in the same way.
function read(text) {
  const settings = { blocks: new Map(), targets: new Map() };
  const { blocks } = readBody(text, ROOT);
  const remotes = atMostOne(blocks, 'remote_state_data_sources')?.blocks ?? [];
  for (const { type, labels, body } of [...blocks, ...remotes]) {
    const path = [type, ...labels].join('.');
    const isTarget = labels.length < 2;
    const into = isTarget ? settings.targets : settings.blocks;
    if (into.has(path)) throw new Refusal(`settings: ${path} is there twice`); // C2, C3
    if (type !== 'remote_state_data_sources') into.set(path, isTarget ? toTarget(body) : toBlock(path, type, labels[0], body));
  }
  return settings;
}

// C12: environment over code.
function merge(code, environment) {
  for (const [path, block] of environment.blocks) {
    const old = code.blocks.get(path);
    code.blocks.set(path, old ? { ...old, args: new Map([...old.args, ...block.args]) } : block);
  }
  for (const [name, { enforced, method, fallbacks }] of environment.targets) {
    const old = code.targets.get(name);
    const inherited = fallbacks.length > 0 ? fallbacks : old?.fallbacks ?? [];
    code.targets.set(name, { enforced: enforced || Boolean(old?.enforced), method, fallbacks: inherited });
  }
  return code;
}

// C5, C11: what the arguments refer to, directly or through others.
function follow(blocks, args, above) {
  for (const value of args.values()) {
    if (!(value instanceof Reference)) continue;
    if (!blocks.has(value.path)) throw new Refusal(`settings: ${value.path} is not declared`);
    if (above.includes(value.path)) throw new Refusal(`settings: ${value.path} depends on itself`);
    follow(blocks, blocks.get(value.path).args, [...above, value.path]);
  }
}

// The rules that hold for all blocks, whether they are in use or not: C3, C4, C5, C10, C11.
function checkAll({ blocks, targets }) {
  for (const { path, kind, type, args } of blocks.values()) {
    const rules = Object.keys(TYPES[kind][type] ?? {});
    const unknown = TYPES[kind][type] && [...args.keys()].find((name) => !rules.includes(name) && !rules.includes(`${name}!`));
    if (unknown) throw new Refusal(`settings: ${path}: unknown argument ${unknown}`);
    const missing = rules.find((rule) => rule.endsWith('!') && (args.get(rule.slice(0, -1)) ?? null) === null);
    if (missing) throw new Refusal(`settings: ${path}: no ${missing.slice(0, -1)}`);
    follow(blocks, args, []);
  }
  for (const [name, { enforced, method, fallbacks }] of targets) {
    for (const path of [method, ...fallbacks]) {
      if (!blocks.has(path)) throw new Refusal(`settings: ${path} is not declared`);
      if (enforced && blocks.get(path).type === 'unencrypted') throw new Refusal(`settings: ${name} is enforced`); // C10
    }
  }
}

// C15: the rules for the arguments of what is in use.
function checkUsed(blocks, { path, kind, type, args }) {
  for (const [name, value] of args) {
    const rule = TYPES[kind][type]?.[name] ?? TYPES[kind][type]?.[`${name}!`];
    if (rule && value !== null && !rule(value)) throw new Refusal(`settings: ${path}: ${name} breaks a rule`);
    if (value instanceof Reference) checkUsed(blocks, blocks.get(value.path));
  }
  const set = (name) => (args.get(name) ?? '') !== '';
  if (path.startsWith('key_provider.pbkdf2.') && set('passphrase') === set('chain')) { // K11
    throw new Refusal(`settings: ${path}: exactly one of passphrase and chain must be set`);
  }
  if (type === 'aes_gcm' && args.get('keys') instanceof Map) { // M1, C6
    for (const [name, key] of args.get('keys')) {
      if (key && ![0, 16, 24, 32].includes(key.length)) throw new Refusal(`settings: ${path}: ${name} has a bad length`);
    }
  }
}

// load gives the blocks, and the methods of the target in the order of T1, or null if there is no such target.
function load({ TF_ENCRYPTION: environment = '', CASE_CODE: code = '', CASE_KIND: kind, CASE_READER: reader }) {
  const settings = merge(read(code.trim()), read(environment.trim()));
  checkAll(settings);
  const { blocks, targets } = settings;
  let target = targets.get(kind === 'opentofu_plan' ? 'plan' : 'state'); // P3
  if (reader !== undefined) target = targets.get(`remote_state_data_source.${reader}`) ?? targets.get('default'); // C14
  if (!target) return { blocks, methods: null };
  const methods = [target.method, ...target.fallbacks].map((path) => blocks.get(path));
  methods.forEach((method) => checkUsed(blocks, method));
  return { blocks, methods };
}

module.exports = { load };
