package attr

// Unencrypted is the address of the built-in method that reads plaintext, and
// the kind of the methods that do so under another name.
const Unencrypted = "unencrypted"
