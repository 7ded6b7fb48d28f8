// Package git reads one file of a git repository. It runs the system's git, so that credential helpers,
// ssh configuration, proxies and certificates work as they do on the command line, and fetches as
// little as the server supports: the trees of one commit, and then only the wanted files.
//
// These words have one meaning in all files:
//
//   - remote: a repository by its address, and access: git's settings and credentials for it.
//   - run: the sources of one provider block, or the one repository of a program that writes.
//   - pin: one ref of one repository. All files that a run reads there come from the commit that its first fetch found.
//   - session: a series of fetches from one pin, shared by all callers that wait meanwhile.
//   - want: the file that one caller of a session waits for.
//   - repository: a throw-away bare repository on this machine. A session makes one, and so does a Visit, for a
//     program that writes.
//   - reach: the part of a commit that the first fetch brings.
//   - tree: the list of the files of one commit, as far as it is known; entry: one line of it.
//   - defaults: the place of a state in the variables of terraform-backend-git.
package git
