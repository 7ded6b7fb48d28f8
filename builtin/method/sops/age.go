package sops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const maxKeyFile = 1 << 20 // in bytes

const sshKeyFile = "SOPS_AGE_SSH_PRIVATE_KEY_FILE"

// ageKeys finds age identities in the method's settings, and where sops looks by default; see
// https://getsops.io/docs/#encrypting-using-age.
type ageKeys struct {
	texts []string
	files []string

	textsFrom string // the environment variable that sets texts; empty if the settings do
	filesFrom string // the environment variable that sets files; empty if the settings do

	command []string // a command that prints identities; empty if there is none
	useSSH  bool     // whether to use SSH keys in the home directory
	env     attr.LookupEnv
}

func newAgeKeys(v attr.Values) ageKeys {
	return ageKeys{
		texts: v.Strings("age_identities"), files: v.Strings("age_identity_files"),
		command: v.Strings("age_identity_command"), useSSH: v.Bool("use_ssh_keys"), env: v.Environment(),
		filesFrom: v.Variable("age_identity_files"), textsFrom: v.Variable("age_identities"),
	}
}

// open decrypts a data key with all available identities. It reads the identity files on each call, because
// they may be created later.
func (a ageKeys) open(ctx context.Context, runs *programs, recipient, sealed string) ([]byte, error) {
	found, problems := a.identities()
	if len(a.command) > 0 {
		ids, err := a.run(ctx, runs, recipient)
		if err != nil {
			problems = append(problems, err)
		}
		found = append(found, ids...)
	}
	if len(found) > 0 {
		dataKey, err := openAge(sealed, found)
		if err == nil {
			return dataKey, nil
		}
		if _, other := errors.AsType[*age.NoIdentityMatchError](err); !other {
			return nil, errors.New("the data key in the file is damaged: age cannot read it")
		}
	}
	switch n := len(found); {
	case len(problems) > 0:
		return nil, fault.List(problems)
	case n == 0:
		return nil, a.advise(fmt.Errorf("%w: no age identity is configured", driver.ErrNoKey), "set age_identities or age_identity_files",
			recipient)
	case n == 1:
		return nil, a.advise(fmt.Errorf("%w: the only age identity does not match", driver.ErrNoKey), "", recipient)
	default:
		return nil, a.advise(fmt.Errorf("%w: none of the %d age identities matches", driver.ErrNoKey, n), "", recipient)
	}
}

func openAge(sealed string, identities []age.Identity) ([]byte, error) {
	content, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), identities...)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(content)
}

// ageParts returns the number of recipients of an age file. Decryption tries each of them.
func ageParts(sealed string) int {
	file, _ := io.ReadAll(armor.NewReader(strings.NewReader(sealed)))
	return bytes.Count(file, []byte("\n-> "))
}

// advise returns err with advice. If sops itself would have tried another key, the advice says how to use
// that key.
func (a ageKeys) advise(err error, advice, recipient string) error {
	if strings.HasPrefix(recipient, "ssh-") && !a.useSSH {
		return fault.With(err, "set use_ssh_keys = true to try the SSH keys in the home directory")
	}
	for _, name := range []string{"SOPS_AGE_KEY_CMD", "SOPS_AGE_SSH_PRIVATE_KEY_CMD"} {
		if _, set := a.env.Get(name); set {
			return fault.With(err, ". The command in "+name+" does not run, because it is only in the environment; set age_identity_command")
		}
	}
	return fault.With(err, advice)
}

// run returns the identities that the user's program prints. It passes the recipient to the program in the
// same way as sops.
func (a ageKeys) run(ctx context.Context, runs *programs, recipient string) ([]age.Identity, error) {
	patience, err := runs.patience(kindAge, "set age_identities or age_identity_files")
	if err != nil {
		return nil, fmt.Errorf("age_identity_command: %w", err)
	}
	p := program(world.For(a.env, false), patience, maxKeyFile, nil, a.command...)
	p.Environ = p.Environ.With("SOPS_AGE_RECIPIENT=" + strings.ReplaceAll(recipient, "\x00", ""))
	printed, _, err := p.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("age_identity_command: the program did not end within %v", programPatience)
	case err != nil:
		// The program's output may contain a key.
		return nil, errors.New("age_identity_command: the program failed or printed too much")
	}
	ids, err := parseAge(printed)
	if err != nil {
		return nil, fmt.Errorf("age_identity_command: the output of the program %w", err)
	}
	return ids, nil
}

// identities returns all usable identities, and an error for each unusable one. The errors contain no part of
// an identity.
func (a ageKeys) identities() (found []age.Identity, problems []error) {
	for i, text := range a.texts {
		ids, err := parseAge([]byte(text))
		if err != nil {
			err = fmt.Errorf("%s %w", cmp.Or(variable(a.textsFrom), fmt.Sprintf("age_identities, element %d", i+1)), err)
			if is := recognize.Text(strings.TrimSpace(text), recognize.Identity).Said(a.textsFrom); is != "" {
				err = fmt.Errorf("%w. It %w", err, fault.Odd(is))
			}
			problems = append(problems, err)
		}
		found = append(found, ids...)
	}
	read := func(name, from string) {
		ids, err := readAge(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", from, err))
		}
		found = append(found, ids...)
	}
	for _, name := range a.files {
		read(name, cmp.Or(variable(a.filesFrom), "age_identity_files"))
	}
	if name, set := a.env.Get(sshKeyFile); set {
		read(name, variable(sshKeyFile))
	}
	for _, name := range a.usual() {
		ids, _ := readAge(name) // the file may not exist
		found = append(found, ids...)
	}
	return found, problems
}

// variable describes an environment variable for an error message. It returns an empty string if name is
// empty.
func variable(name string) string {
	if name == "" {
		return ""
	}
	return "the environment variable " + name
}

// usual returns the paths where sops looks by default. It includes sops's own key file only if no identity is
// configured. Otherwise, only the configured identities may open a file.
func (a ageKeys) usual() []string {
	var out []string
	_, named := a.env.Get(sshKeyFile)
	if folder := configFolder(a.env); folder != "" && !named && len(a.texts)+len(a.files)+len(a.command) == 0 {
		out = append(out, filepath.Join(folder, "sops", "age", "keys.txt"))
	}
	if home, err := world.Home(); err == nil && a.useSSH {
		out = append(out, filepath.Join(home, ".ssh", "id_ed25519"), filepath.Join(home, ".ssh", "id_rsa"))
	}
	return out
}

func configFolder(env attr.LookupEnv) string {
	if folder, set := env.Get("XDG_CONFIG_HOME"); set && runtime.GOOS != "windows" {
		return folder
	}
	folder, err := world.ConfigDir()
	if err != nil {
		return ""
	}
	if runtime.GOOS == "darwin" {
		folder = filepath.Join(folder, "..", "Library", "Application Support")
	}
	return folder
}

func readAge(name string) ([]age.Identity, error) {
	content, err := keyfile.ReadText(name)
	if err != nil {
		return nil, err
	}
	ids, err := parseAge(content)
	if err != nil {
		return nil, fmt.Errorf("%s %w", quote(name), err)
	}
	return ids, nil
}

var errProtected = errors.New("is protected by a passphrase, but this is not supported here; decrypt it with age or ssh-keygen -p first")

// parseAge returns the age identities in a key file, which may also be separated by spaces, or the SSH
// private key in it. Its errors are the end of a sentence about the file.
func parseAge(content []byte) ([]age.Identity, error) {
	text := strings.TrimSpace(string(content))
	switch {
	case recognize.IsAge(content):
		return nil, errProtected
	case recognize.IsPEM(text):
		id, err := agessh.ParseIdentity(content)
		if _, protected := errors.AsType[*ssh.PassphraseMissingError](err); protected {
			return nil, errProtected
		}
		if err != nil {
			return nil, errors.New("is not an SSH private key that age supports (Ed25519 or RSA)")
		}
		return []age.Identity{id}, nil
	}
	var out []age.Identity
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if strings.HasPrefix(word, "AGE-PLUGIN-") {
				return out, errors.New("is for an age plugin, but plugins are not supported here; run sops -d to decrypt the file")
			}
			ids, err := age.ParseIdentities(strings.NewReader(word))
			if err != nil {
				return out, errors.New("is not an age identity (AGE-SECRET-KEY-…); copy the whole identity")
			}
			out = append(out, ids...)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("contains no age identity; check the source of the identity")
	}
	return out, nil
}
