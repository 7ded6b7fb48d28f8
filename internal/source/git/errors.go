package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// These patterns match git messages after which another attempt may help. Git exits with status 128 in all
// these cases, so only the messages, in the C locale, tell them apart.
var (
	noSuchRef     = lazyregexp.New(`couldn't find remote ref`)
	otherFormat   = lazyregexp.New(`mismatched algorithms|does not support this repository.s hash algorithm`)
	redirect      = lazyregexp.New(`requested URL returned error: 30[12378]`)
	notOurRef     = lazyregexp.New(`not our ref`)
	unadvertised  = lazyregexp.New(`unadvertised object`)
	filterIgnored = lazyregexp.New(`filtering not recognized by server`)
	brokenOff     = lazyregexp.New(`returned error: 500|hung up unexpectedly`)
	tooLarge      = lazyregexp.New(`(?m)^(fatal|error): (attempting to allocate|.*File too large)`) // not "remote: fatal: …"
	badPack       = lazyregexp.New(`fetch-pack: invalid index-pack output`)
	filterRefused = lazyregexp.New(`(?i)remote error: .*filter`)
	lockNotStored = lazyregexp.New(`(?i)(cannot lock ref|cannot update ref|cannot process|refname conflict|` +
		`unable to (create|write|update|lock|resolve)|file ?name too long|filename).*` + localLocks)
)

var errNoCommit = errors.New("the ref is not a commit")

func says(err error, what *lazyregexp.Regexp) bool {
	e, ok := errors.AsType[*commandError](err)
	return ok && what.MatchString(e.said)
}

// isRefusal reports whether the server lacks the requested objects or refuses to send them.
func isRefusal(err error) bool { return says(err, notOurRef) || says(err, unadvertised) }

// noRights matches the messages of hosts that know the user, but give the user no right to the repository.
var noRights = []string{
	`DENIED by `,                          // gitolite
	`Permission to \S+ denied to`,         // GitHub
	`not allowed to (push|download) code`, // GitLab
	`is not authorized to (read|write)`,   // Gitea
}

// advice maps git messages to remedies. The first match is used.
var advice = []struct {
	when *lazyregexp.Regexp
	then func(d *repository, at ref) error
}{
	{words(`(?m)^(fatal|error): Out of memory`), // not "remote: fatal: …", which is the server's own problem
		say("git needs more memory than allowed, because the server's answer is too long")},
	{words(`\Afatal: fetch-pack: invalid index-pack output\s*\z`, `died of signal 24\b`), // git prints no message of its own: SIGXCPU
		say("git was stopped, because unpacking the server's answer took more than " + maxWork.String() + " of processor time; " +
			"for a large repository, use a server that supports partial clones")},
	{tooLarge, say("the server sent too much data, or the repository is too large to read without partial clones; use a server that " +
		"supports partial clones")},
	{noSuchRef, refAdvice},
	{otherFormat, say("the commit ID in the argument ref does not have the length of the IDs in the repository; write all digits (40 of " +
		"SHA-1, or 64 of SHA-256)")},
	{notOurRef, func(_ *repository, at ref) error {
		if at.isID {
			return fmt.Errorf("the server has no commit %s; check the ID, and push a branch or tag that contains the commit", at)
		}
		return errors.New("the server no longer has the commit that was just read, probably because the branch was rewritten; try again")
	}},
	{unadvertised, say("the server offers only branches and tags, not single commits; set the argument ref to a branch or tag")},
	{words(`Host key verification failed`, `REMOTE HOST IDENTIFICATION HAS CHANGED`, `No .* host key is known`),
		say("ssh does not trust the server's host key; compare it with the key that the server's owner publishes, then add it to " +
			"known_hosts")},
	{words(`Permission denied \(`, `Too many authentication failures`),
		keyAdvice},
	{words(`Authentication failed`, `could not read (Username|Password)`, `unable to get password from user`, `returned error: 40[13]`,
		`HTTP Basic: Access denied`), deniedAdvice},
	{redirect, say("the server redirects to an address to which credentials are not sent; set the argument repository to that address")},
	{words(`unable to update url base from redirection`, `not valid: is this a git repository`),
		say("the server did not respond like a git server, and may have sent a sign-in page; check the address and the credentials")},
	{words(`strange hostname`, `strange pathname`), say("git refuses the address, because its host or path is unusual; correct the address")},
	{words(`transport '.*' not allowed`, `[Pp]rotocol "?.*"? .*(not supported|disabled)`),
		say("a redirect, or url.<base>.insteadOf in the git configuration, leads to another transport; set the argument repository to the " +
			"final address")},
	{words(`dubious ownership`), say("the repository belongs to another user; add its folder to safe.directory in your git configuration")},
	{words(`repository '.*' not found`, `[Rr]epository not found`, `does not appear to be a git repository`, `could not be found`,
		`invalid gitfile format`,
		`returned error: 404`), notFoundAdvice},
	{words(`(?i)unexpected TLS packet|wrong version number|record overflow|packet length`),
		say("the server does not speak TLS at this port; check the port and the scheme")},
	{words(`SSL_connect: SSL_ERROR_SYSCALL`, `TLS connect error: .*unexpected eof`, `gnutls_handshake.*non-properly terminated`),
		say(netfail.ErrHungUp.Error())},
	{words(`(?i)certificate|SSL`),
		certificateAdvice},
	{words(`(?i)could not resolve host`, `failed to connect`, `couldn't connect`, `connection refused`, `connection timed out`,
		`network is unreachable`, `no route to host`),
		say("the server cannot be reached; check the address, the network and the proxy settings")},
	{words(`Operation too slow`, `Operation timed out`, `Timeout, server`), say("the server stopped sending; try again")},
	{words(noRights...),
		say("the server's rules deny this user access to the repository, or there is no such repository; check the address, and the server's " +
			"rules for reading and for branches")},
	{words(`dumb http transport does not support`),
		say(`the server offers only plain files ("dumb http"); run git http-backend on the server`)},
	{words(`returned error: 413`), say("the upload is too large for the server or a proxy in front of it; raise the size limit there")},
	{words(`returned error: (429|5\d\d)`), say("the server is busy or unavailable; try again")},
	{words(`No space left on device`, `Disk quota exceeded`), say("the disk for temporary files is full; free some space, or set TMPDIR " +
		"to another folder")},
	{words(`early EOF`, `unexpected disconnect`, `hung up unexpectedly`, `index-pack failed`, `invalid index-pack`, `bad pack`,
		`pack (is corrupted|has bad object)`, `inflate`, `reset by peer`, `transfer closed`, `Empty reply from server`),
		say("the connection broke off, or the data was damaged; try again")},
}

func words(patterns ...string) *lazyregexp.Regexp { return lazyregexp.New(strings.Join(patterns, "|")) }

func say(sentence string) func(*repository, ref) error {
	return func(*repository, ref) error { return errors.New(sentence) }
}

var shortID = lazyregexp.New(`^[0-9A-Fa-f]{4,63}$`)

func refAdvice(d *repository, at ref) error {
	page := "" // git mistakes a page without line breaks for a repository without branches
	if strings.HasPrefix(d.remote.protocol, "http") && !d.access.sent() {
		page = ". Perhaps the server sent a sign-in page, because no credentials were sent"
	}
	if at.name == "HEAD" {
		return errors.New("the repository has no HEAD: it is empty, or its default branch does not exist; set the argument ref to a branch, " +
			"tag or commit" + page)
	}
	if d.others != nil && len(d.others) == 0 {
		return errors.New("the repository has no branches or tags: it is empty, or the address is wrong; check the address" + page +
			d.remote.ofPage())
	}
	short := d.remote.ofPage()
	switch {
	case at.isBranch() && slices.Contains(d.others, at.name):
		return fmt.Errorf("the repository has no branch %s, only a tag with that name; set the argument ref to a branch", at)
	case len(d.others) > 0:
		short, page = syntax.Configured(shortName(at.name), d.others), ""
	}
	if shortID.MatchString(at.name) {
		short = "; if this is a commit ID, write all of its digits (40 or 64)"
	}
	if branch, ok := strings.CutPrefix(at.name, "origin/"); ok {
		short = fmt.Sprintf("; remove origin/ (the name of the server in a clone), and write %s", shown(branch))
	}
	err := fmt.Errorf("there is no branch, tag or ref %s in the repository%s%s", at, short, page)
	if near := syntax.Suggest(shortName(at.name), d.others); near != "" && short == near {
		return question{err}
	}
	return err
}

// question is an error that ends with a question mark.
type question struct{ error }

func certificateAdvice(d *repository, _ ref) error {
	if d.access.caFile != "" {
		return d.access.grant.Blame(errors.New("the server's certificate was not accepted, because ca_file does not contain the certificate of " +
			"the authority that signed it; add that certificate to the file"))
	}
	return errors.New("the server's certificate was not accepted; if a private authority signed it, set ca_file in {credentials}")
}

func keyAdvice(d *repository, _ ref) error {
	switch a := d.access; {
	case a.keyMistake != "":
		return a.grant.Blame(errors.New("the ssh server accepted no key: " + a.keyMistake))
	case a.sshKeyFile != "":
		return a.grant.Blame(errors.New("the ssh server did not accept the private key; add the public key to the server, and check the user " +
			"in the address (usually git)"))
	case a.passwordUnused:
		return a.grant.Blame(errors.New("the ssh server accepted no key, and a password applies only to https:// addresses; set " +
			"ssh_private_key_file, or use the https address"))
	}
	return errors.New("the ssh server accepted no key; load a key into the ssh agent, or set ssh_private_key_file in {credentials}")
}

var errRejected = errors.New("the server rejected the credentials")

func deniedAdvice(d *repository, _ ref) error {
	switch a := d.access; {
	case a.password != "":
		return a.grant.Blame(fault.With(errRejected, source.Rights))
	case a.username != "":
		return errors.New("the server requires a password, but only the user name is set; set the argument password (usually to a token) in " +
			"{credentials}")
	case a.grant.Found:
		return errors.New("the server requires credentials, but there are none; set up a git credential helper, or set username and " +
			"password in {credentials}")
	}
	err := errors.New("the server requires credentials, but there are none; set up a git credential helper, or add the credentials to " +
		"{settings}")
	if missed := d.uncovered(); missed != "" {
		err = errors.New("the server requires credentials, but " + missed)
	}
	return fault.Known(err, source.NoCredentials("git", d.remote.url, "username = var.git_username", "password = var.git_password"))
}

// uncovered returns why no credentials block applies to an http or https address. It returns an empty string
// for other protocols.
func (d *repository) uncovered() string {
	switch {
	case d.remote.url == nil || d.remote.url.Scheme != "https" && d.remote.url.Scheme != "http":
		return ""
	case d.access.grant.Found:
		return "no credentials are set in {credentials}; complete the block"
	}
	return d.run.http.Uncovered(d.remote.url)
}

func notFoundAdvice(d *repository, _ ref) error {
	if folder := d.remote.folder(); folder != "" {
		return errors.New(whyNoRepository(folder))
	}
	if d.access.sent() {
		return errors.New("there is no such repository, or these credentials have no access to it; check the address and the credentials")
	}
	if page := d.remote.ofPage(); page != "" {
		return errors.New("there is no such repository" + page)
	}
	hidden := "there is no such repository, or it requires credentials; check the address"
	if missed := d.uncovered(); missed != "" {
		return errors.New(hidden + ". The server got no credentials: " + missed)
	}
	return errors.New(hidden)
}

// explain adds a remedy and git's messages to a git error. The caller must add the repository.
func (d *repository) explain(err error, at ref) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, errNoCommit) {
		return fmt.Errorf("%s is not a commit; set the argument ref to a branch, a tag of a commit, or the ID of a commit", at)
	}
	failed, ok := errors.AsType[*commandError](err)
	if !ok {
		return err
	}
	what := errors.New("git failed")
	if failed.wasKilled() {
		what = fmt.Errorf("git was killed (%w)", failed.err)
	}
	for _, a := range advice {
		if a.when.MatchString(failed.said) {
			what = a.then(d, at)
			break
		}
	}
	if d.users != nil && d.users.elsewhere {
		what = fmt.Errorf("%w. If a block sets a password, url.<base>.insteadOf in the git configuration does not apply; set the argument "+
			"repository to the final address", what)
	}
	said := oneLine(d.access.redact(failed.said))
	if said == "" {
		if !failed.wasKilled() {
			what = fmt.Errorf("%w (%w)", what, failed.err)
		}
		return &explainedError{what, "", failed}
	}
	if errors.Is(what, errRejected) { // git asks for other credentials, as if none had been sent
		if said = oneLine(prompts.ReplaceAllString(d.access.redact(failed.said), "")); said == "" {
			return &explainedError{what, "", failed}
		}
	}
	end := ". "
	if fault.Has[fault.NoBlock](what) {
		end = "\n\n"
	} else if _, asks := errors.AsType[question](what); asks {
		end = " "
	}
	return &explainedError{what, fmt.Sprintf("%sgit said: %s", end, outside.End(said, maxSaid)), failed}
}

// explainedError is a git error with a remedy.
type explainedError struct {
	error
	said   string // git's messages, after the advice
	failed *commandError
}

func (e *explainedError) Error() string { return e.Tell(error.Error) }

// Tell works like Error, but gets the wording of the reason from the function text.
func (e *explainedError) Tell(text func(error) string) string { return text(e.error) + e.said }

func (e *explainedError) Unwrap() []error { return []error{e.error, e.failed} }

var (
	prompts     = words(`(?m)^fatal: could not read (Username|Password) for .*$`)
	forbidden   = words(append([]string{`returned error: 403`, `Access denied`}, noRights...)...)
	signInError = words(`Permission denied \(`, `Authentication failed`, `could not read (Username|Password)`, `returned error: 401`,
		`unable to get password from user`) // of git 2.47, with credential.interactive=false
	clientError = words(`returned error: 4(0[0-79]|1\d|2[0-8])`)
	unanswered  = words(`(?i)could not resolve host`, `failed to connect`, `couldn't connect`, `connection refused`, `connection timed out`,
		`network is unreachable`, `no route to host`, `Operation too slow`, `Operation timed out`, `Timeout, server`,
		`returned error: (429|5\d\d)`, `early EOF`, `unexpected disconnect`, `hung up`, `reset by peer`, `transfer closed`, `Empty reply`,
		`the remote end`, `broken pipe`)
)

// IsDenied reports whether the server requires other credentials or permissions.
func IsDenied(err error) bool { return IsRejected(err) || says(err, forbidden) }

// IsRejected reports whether the server refused the credentials themselves. It returns false if only
// permissions are missing.
func IsRejected(err error) bool { return says(err, signInError) }

// IsUnanswered reports whether the connection failed. The server may have executed the request, and another
// attempt may succeed.
func IsUnanswered(err error) bool {
	e, ok := errors.AsType[*commandError](err)
	return ok && (e.wasKilled() || says(err, unanswered) && !says(err, clientError) && !IsDenied(err))
}

// oneLine joins the lines of git's messages, which may end with \r, \n or both.
func oneLine(said string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(said, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

const (
	maxSaid = 1024 // size limit of git's messages in an error, in bytes
	maxName = 1024 // size limit of a path or ref in an error, in bytes
)

func shown(name string) string { return outside.Line(name, maxName) }
