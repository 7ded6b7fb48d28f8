// Package wrap runs Terraform or OpenTofu with its own HTTP backend on the loopback interface. The backend encrypts
// states before it writes them to a store, and decrypts the states that it reads.
//
// Terraform, the child process, must not know any other place for a state, because it would write plaintext there.
// Therefore wrap controls everything the child receives. It parses the command line with a table and rebuilds it, see
// [cmdline.Line]. It records its backend for this run, so that Terraform refuses any other backend, see
// [module.RunData]. It passes copies of saved plans, see [plan.Files].
//
// The steps of a run are listed in run.go. These words have one meaning in all packages of wrap:
//
//   - backend: the place of the encrypted state in a store. Terraform's own backend is the proxy.
//   - record: the file in which Terraform or OpenTofu stores the backend settings of a module.
//   - own: a file or folder that wrap created below .terraform/statecrypt in the module.
//   - leftover: a file with a state that a run could not write to the backend, such as errored.tfstate.
//   - unused: a state that the module has when it is used without wrap.
//   - label: the lineage and the serial of a state.
package wrap
