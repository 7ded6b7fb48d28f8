// Package wrap runs Terraform or OpenTofu with an HTTP backend of its own on the
// loopback interface, which keeps in a store what it has sealed, and opens what it gets
// from there.
//
// The child must not know another way to a state than ours: it would write
// plaintext there. So wrap decides what the child gets. It reads the command line
// by a table and hands on what it has read, see [cmdline.Line]; it writes down which
// backend Terraform has, so that Terraform refuses any other, see [module.WriteRecord]; and it
// hands over saved plans as copies, see [plan.Files].
//
// The steps of a run are listed in run.go. These words have one meaning in all rooms:
//
//   - backend: where the encrypted state is kept, a state in a store. Terraform's own backend is the proxy.
//   - record: the file in which a CLI has written down the backend of a module.
//   - own: a file or folder that wrap has made, in .terraform/statecrypt of the module.
//   - leftover: a file with a state that a run could not write to the backend, such as errored.tfstate.
//   - unused: a state that the module had without wrap.
//   - label: the lineage and the serial of a state.
package wrap
