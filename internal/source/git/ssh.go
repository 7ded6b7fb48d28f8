package git

import (
	"context"
	"path/filepath"
	"strings"
)

// defaultSSH runs ssh so that it never prompts and does not wait forever. For a host that is already in
// known_hosts, it does not add further keys or addresses.
const defaultSSH = "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o UpdateHostKeys=no -o CheckHostIP=no"

// sshOptions returns the ssh options from a credentials block or from terraform-backend-git's variables.
func (a *access) sshOptions() string {
	options := ""
	if a.sshKeyFile != "" {
		options += identity(filepath.ToSlash(a.sshKeyFile))
	}
	if a.onlyKey {
		options += " -o IdentitiesOnly=yes"
	}
	if a.hostKeys != "" {
		options += " -o StrictHostKeyChecking=" + a.hostKeys
	}
	if a.hostKeys == "no" {
		// The unverified key must not be added to known_hosts, where it would be trusted, and other programs
		// must not share the connection. On Windows too, ssh understands /dev/null.
		options += " -o UserKnownHostsFile=/dev/null -o ControlPath=none"
	}
	return options
}

// sshCommand returns the value for GIT_SSH_COMMAND: the user's own command, or defaultSSH if there is none,
// followed by our options. It returns an empty string if the user's command needs no options. An https
// address needs the command, too, because url.<base>.insteadOf can replace it with an ssh address.
func (d *repository) sshCommand(ctx context.Context) (string, error) {
	options := d.access.sshOptions()
	users, err := d.usersSSH(ctx)
	switch {
	case err != nil:
		return "", err
	case users == "" && d.access.asGit:
		return defaultSSH + options + " -o User=git", nil
	case users == "":
		return defaultSSH + options, nil
	case options == "":
		return "", nil
	}
	return users + options, nil
}

// usersSSH returns the user's ssh command, or an empty string if there is none. It follows the order of
// git(1): GIT_SSH_COMMAND, core.sshCommand, GIT_SSH.
func (d *repository) usersSSH(ctx context.Context) (string, error) {
	if command, _ := d.run.environment(false).Lookup("GIT_SSH_COMMAND"); command != "" {
		return command, nil
	}
	out, err := d.output(ctx, 64<<10, "config", "--get", "core.sshCommand")
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	// The fetch will report any other error.
	if command := strings.TrimSpace(string(out)); err == nil && command != "" {
		return command, nil
	}
	if program, _ := d.run.environment(false).Lookup("GIT_SSH"); program != "" {
		return shellQuote(program), nil
	}
	return "", nil
}

// identity returns the ssh option for the key at path. Ssh expands tokens such as %h in a path, and replaces
// %% with %. With -i, however, it looks for the file before doing so. A path that contains % therefore needs
// the long form, quoted as in ssh_config(5).
func identity(path string) string {
	if !strings.Contains(path, "%") {
		return " -i " + shellQuote(path)
	}
	return " -o " + shellQuote(`IdentityFile="`+strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(path)+`"`)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
