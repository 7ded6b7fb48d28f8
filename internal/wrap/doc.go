// Package wrap runs Terraform or OpenTofu with an HTTP backend of its own on the loopback interface.
// The backend encrypts states before it writes them to a store, and decrypts states that it reads.
//
// The child must not know any other place of a state, because it would write plaintext there.
// Therefore wrap decides what the child receives. It parses the command line by a table and writes it
// anew, see [cmdline.Line]; it records the backend for this run, so that Terraform refuses any other, see
// [module.RunData]; and it passes copies of saved plans, see [plan.Files].
//
// The steps of a run are listed in run.go. These words have one meaning in all packages of wrap:
//
//   - backend: the place of the encrypted state, a state in a store. Terraform's own backend is the proxy.
//   - record: the file in which a CLI has written down the backend of a module.
//   - own: a file or folder that wrap has made, in .terraform/statecrypt of the module.
//   - leftover: a file with a state that a run could not write to the backend, such as errored.tfstate.
//   - unused: a state that the module had without wrap.
//   - label: the lineage and the serial of a state.
package wrap
