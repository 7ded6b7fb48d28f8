package git

import (
	"context"
	"io"
	"path/filepath"
	"strings"
)

// defaultSSH neither asks nor waits for ever.
const defaultSSH = "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15"

// sshCommand returns the value for GIT_SSH_COMMAND. What the user has set up is
// kept, with our options after it; "" leaves it alone. An https address needs
// it too, where url.<base>.insteadOf makes an ssh address of it.
func (r *run) sshCommand(ctx context.Context, a *access) (string, error) {
	options := ""
	if a.sshKeyFile != "" {
		options += identity(filepath.ToSlash(a.sshKeyFile)) + " -o IdentitiesOnly=yes"
	}
	if a.hostKeys != "" {
		options += " -o StrictHostKeyChecking=" + a.hostKeys
	}
	users, err := r.usersSSH(ctx)
	switch {
	case err != nil:
		return "", err
	case users == "":
		return defaultSSH + options, nil
	case options == "":
		return "", nil
	}
	return users + options, nil
}

// usersSSH asks in the order of git(1): GIT_SSH_COMMAND, core.sshCommand, GIT_SSH.
func (r *run) usersSSH(ctx context.Context) (string, error) {
	if command, _ := lookup(r.environ, "GIT_SSH_COMMAND"); command != "" {
		return command, nil
	}
	var out []byte
	// GIT_DIR keeps the repository that Terraform happens to run in out of it.
	_, err := execute(ctx, append(scrubbed(r.environ), "GIT_DIR=/nonexistent"), nil, func(stdout io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(stdout, 64<<10))
		return err
	}, []string{"git", "config", "--get", "core.sshCommand"})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	// Any other error is left for the fetch to meet and to report.
	if command := strings.TrimSpace(string(out)); err == nil && command != "" {
		return command, nil
	}
	if program, _ := lookup(r.environ, "GIT_SSH"); program != "" {
		return shellQuote(program), nil
	}
	return "", nil
}

// identity names the key. ssh replaces %h and the like in it, and %% by %; but
// -i looks for the file before that, so such a path needs the other spelling,
// which is quoted as in ssh_config(5).
func identity(path string) string {
	if !strings.Contains(path, "%") {
		return " -i " + shellQuote(path)
	}
	return " -o " + shellQuote(`IdentityFile="`+strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(path)+`"`)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
