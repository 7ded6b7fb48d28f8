// Package git reads one file from a git repository. It runs the system's git, so that credential helpers, ssh
// configuration, proxies and certificates work as they do on the command line. It fetches as little as the
// server supports: the trees of one commit, and then only the requested files.
//
// These terms have the same meaning in all files:
//
//   - remote: the address of a repository; access: git's settings and credentials for it.
//   - run: the sources of one provider block, or the one repository of a program that writes.
//   - pin: one ref of one repository. All files that a run reads there come from the commit that the first
//     fetch found.
//   - session: a series of fetches for one pin, shared by all callers that are waiting at the time.
//   - want: the file that one caller of a session waits for.
//   - repository: a throw-away bare repository on this machine. A session creates one, and so does a Visit,
//     for a program that writes.
//   - reach: how much of a commit the first fetch gets.
//   - tree: the list of files in one commit, as far as it is known; entry: one line of that list.
//   - defaults: the place of a state according to terraform-backend-git's variables.
package git
