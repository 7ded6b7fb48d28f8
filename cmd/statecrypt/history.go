package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/overview"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

const (
	fewVersions = 20   // how many versions history lists without -n
	maxVersions = 1000 // the highest value of -n
)

// isFile reports whether an argument names a file rather than a version: the file exists, or the argument begins like a
// path. IDs of versions may contain slashes, too.
func isFile(arg string) bool {
	first, _, hasSlash := strings.Cut(filepath.ToSlash(arg), "/")
	return arg == stdinName || recognize.Exists(arg) || filepath.VolumeName(arg) != "" ||
		hasSlash && (first == "" || first == "." || first == "..")
}

// ofVersion calls work with a version in the backend. The first signal cancels it, and the second ends the process.
func (c *call) ofVersion(
	ctx context.Context, target encryption.Target, id string, work func(ctx context.Context, name string, file []byte) error,
) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	name := "the version " + outside.Line(id, maxName)
	file, err := c.readVersion(ctx, target, id)
	if err == nil {
		err = work(ctx, name, file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (c *call) readVersion(ctx context.Context, target encryption.Target, id string) (file []byte, err error) {
	kept, err := c.states(ctx, c.text("config"), target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	versions, err := kept.Versions()
	if err != nil {
		return nil, err
	}
	return versions.Whole(ctx, id)
}

// untilSignal returns a context that SIGINT, SIGTERM or one of the other given signals cancels. A second signal ends
// the process.
func untilSignal(ctx context.Context, more ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, append(more, os.Interrupt, syscall.SIGTERM)...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// history is the output of history -json. It is documented in the help of the command.
type history struct {
	Versions  []keptVersion `json:"versions"`
	More      bool          `json:"more"`
	Plaintext int           `json:"plaintext"`
}

// keptVersion is one version in the output of history.
type keptVersion struct {
	Version      string   `json:"version"`
	Status       string   `json:"status"`
	Created      string   `json:"created,omitempty"`
	Author       string   `json:"author,omitempty"`
	Subject      string   `json:"subject,omitempty"`
	Size         int64    `json:"size"`
	Kind         string   `json:"kind,omitempty"`
	Format       string   `json:"format,omitempty"`
	Serial       *int64   `json:"serial,omitempty"`
	Lineage      string   `json:"lineage,omitempty"`
	KeyProviders []string `json:"key_providers,omitempty"`
	Opens        *bool    `json:"opens,omitempty"`
	Method       string   `json:"method,omitempty"`
	Fallback     bool     `json:"fallback,omitempty"`
	Error        string   `json:"error,omitempty"`
}

// history lists the versions of the state in the backend.
func (c *call) history(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	target := encryption.Target{}
	var err error
	if c.on("open") {
		target, err = c.target(c.text("config"))
	} else if _, err = c.settings(c.text("config")); c.backend != nil { // the block needs no key
		err = nil
	}
	if err != nil {
		return err
	}
	c.noteUnused()
	kept, err := c.states(ctx, c.text("config"), target)
	if err == nil {
		err = errors.Join(c.listVersions(ctx, kept, target), kept.Close())
	}
	return err
}

// listVersions prints the versions, and notes about them.
func (c *call) listVersions(ctx context.Context, kept *states.States, target encryption.Target) error {
	limit := fewVersions
	if c.isGiven("n") {
		limit, _ = strconv.Atoi(c.text("n")) // was checked
	}
	versions, err := kept.Versions()
	if err != nil {
		return err
	}
	list, more, err := versions.Versions(ctx, limit)
	if err != nil {
		return fmt.Errorf("the versions of the state cannot be listed: %w", err)
	}
	all := history{More: more}
	lineage := ""
	var worst error
	for _, k := range list {
		one, err := c.keptVersion(ctx, versions, k, target)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			worst = exitStatus(exitFailure)
		}
		if one.Kind == "state" {
			all.Plaintext++
		}
		all.Versions = append(all.Versions, one)
		if !c.on("json") {
			if _, err := io.WriteString(c.stdout, c.versionText(one, &lineage)); err != nil {
				return keyfile.Reason(err)
			}
		}
	}
	if c.on("json") {
		encoded, _ := json.Marshal(all) // strings and numbers can always be encoded
		if _, err := io.WriteString(c.stdout, outside.JSON(string(encoded))+"\n"); err != nil {
			return keyfile.Reason(err)
		}
	}
	c.noteHistory(all)
	return worst
}

// keptVersion describes a version. The error is that of the store.
func (c *call) keptVersion(
	ctx context.Context, versions states.Versions, k store.Kept, target encryption.Target,
) (one keptVersion, err error) {
	one = keptVersion{
		Version: k.ID, Author: k.Author, Subject: k.Subject, Size: k.Size,
		Status: [...]string{"older", "current", "deleted", "undelete first"}[k.Status],
	}
	if year := k.Created.Year(); !k.Created.IsZero() && year >= 0 && year <= 9999 {
		one.Created = k.Created.UTC().Format(time.RFC3339)
	}
	if k.Status == store.KeptDeleted || k.Status == store.KeptUndelete {
		return one, nil
	}
	var file []byte
	if c.on("open") {
		file, err = versions.Whole(ctx, k.ID)
	} else {
		file, err = versions.Brief(ctx, k)
	}
	if err != nil {
		one.Error = c.audience().Text(err)
		return one, err
	}
	found, damage := inspectFile(k.ID, file)
	one.Kind, one.Format, one.Serial, one.Lineage, one.KeyProviders = found.Kind, found.Format, found.Serial, found.Lineage, found.KeyProviders
	if damage != nil {
		one.Error = c.audience().Text(damage)
	}
	if !c.on("open") {
		return one, nil
	}
	opened, damage := target.DecryptInPlace(ctx, file)
	one.Opens = new(damage == nil)
	if damage != nil {
		one.Error = c.audience().Text(damage)
		return one, nil
	}
	one.Method, one.Fallback = opened.Method, opened.UsedFallback
	one.Serial, one.Lineage, _ = store.Label(opened.Data)
	return one, nil
}

// versionText returns a version as text for users. It repeats no lineage.
func (c *call) versionText(v keptVersion, lineage *string) string {
	line := func(parts ...string) string {
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
		if len(parts) == 0 {
			return ""
		}
		return "  " + strings.Join(parts, ", ") + "\n"
	}
	head := outside.Line(v.Version, maxName)
	if v.Status != "older" && v.Status != v.Version {
		head += ", " + v.Status
	}
	by := outside.Line(v.Author, maxName)
	if v.Subject != "" {
		by += ": " + outside.Line(v.Subject, maxName)
	}
	serial, size := "", ""
	if v.Serial != nil {
		serial = fmt.Sprintf("serial %d", *v.Serial)
	}
	if v.Kind != "" && v.Size >= 0 {
		size = fmt.Sprintf("%d bytes", v.Size)
	}
	other := ""
	if v.Lineage != "" && v.Lineage != *lineage {
		*lineage = v.Lineage
		other = "lineage " + outside.Line(v.Lineage, maxName)
	}
	created := strings.NewReplacer("T", " ", "Z", " UTC").Replace(v.Created)
	if at, err := time.Parse(time.RFC3339, v.Created); err == nil {
		created += store.Age(at)
	}
	text := head + "\n" + line(created, by) + line(serial, size, c.kindText(v)) + line(other)
	why := outside.Line(strings.NewReplacer("\n  - ", " ", "\n", ". ").Replace(v.Error), maxWhy)
	switch {
	case v.Fallback:
		text += c.paint(c.stdout, yellow, line("opens only with the fallback "+v.Method))
	case v.Method != "":
		text += line("opens with " + v.Method)
	case v.Error != "" && v.Opens != nil:
		text += c.paint(c.stdout, red, line("does not open: "+why))
	case v.Error != "":
		text += c.paint(c.stdout, red, line(why))
	}
	return text
}

// kindText says whether a version is encrypted, and which keys it names.
func (c *call) kindText(v keptVersion) string {
	switch {
	case v.Kind == "state":
		return c.paint(c.stdout, red, "PLAINTEXT")
	case v.Kind == "encrypted" && v.Format == "opentofu":
		names := make([]string, len(v.KeyProviders))
		for i, name := range v.KeyProviders {
			names[i] = outside.Line(name, maxName)
		}
		return strings.TrimSuffix("encrypted with "+strings.Join(names, " and "), " with ")
	case v.Kind == "encrypted":
		return "encrypted by " + v.Format
	case v.Kind == "unknown":
		return "not recognized without a key"
	}
	return v.Kind
}

// noteHistory prints notes about the listed versions.
func (c *call) noteHistory(all history) {
	fallbacks, closed := 0, 0
	for _, v := range all.Versions {
		if v.Fallback {
			fallbacks++
		}
		if v.Opens != nil && !*v.Opens {
			closed++
		}
	}
	if !c.on("open") {
		c.say(yellow, "note:", "serials, lineages and keys are as written in the files, which nothing has verified; -open verifies them")
	}
	some := func(mark string, n int, text string) {
		if n > 0 {
			c.say(yellow, mark, fmt.Sprintf("%d of %d versions %s", n, len(all.Versions), text))
		}
	}
	some("warning:", all.Plaintext, "are plaintext, which anyone with access to the store can read")
	some("note:", fallbacks, "open only with a fallback; keep it as long as you may need them")
	some("warning:", closed, "do not open with these settings")
	if all.More {
		c.say(yellow, "note:", "there are older versions; list them with a higher -n")
	}
}

// restore writes an older version of the state to the backend.
func (c *call) restore(ctx context.Context) error {
	arg := c.args[0]
	if arg == stdinName {
		return usageError("restore may ask a question on standard input; name a version or a file")
	}
	o, err := c.wrapOptions()
	if err != nil {
		return err
	}
	o.Wishes.Accept = c.on("replace")
	r := states.Restoration{ID: arg, Replace: c.on("replace"), Show: c.showChange}
	if isFile(arg) {
		r.ID, r.File = "", arg
	}
	ctx, stop := untilSignal(ctx, syscall.SIGHUP) // a signal stops requests, so locks are released
	defer stop()
	switch {
	case c.on("yes"):
		r.Ask = func(string) bool { return true }
	case isTerminal(c.stdin) && isTerminal(c.stderr):
		r.Ask = func(question string) bool { return c.ask(ctx, question) }
	}
	return wrap.Restore(ctx, o, r)
}

// showChange prints to standard error how restoring a version changes the state, without values. If there is no state
// to compare with, it prints the content of the version.
func (c *call) showChange(there, restored *overview.State, opened *encryption.Opened) error {
	paint := func(colour, text string) string { return c.paint(c.stderr, colour, text) }
	if there == nil {
		from := overview.File{Encrypted: opened.Encrypted, Method: opened.Method, Fallback: opened.UsedFallback}
		_, err := restored.WriteText(c.stderr, overview.View{File: from, Paint: paint})
		return keyfile.Reason(err)
	}
	d, err := overview.Compare(there, restored)
	if err == nil {
		err = keyfile.Reason(d.WriteText(c.stderr, overview.DiffView{Paint: paint}))
	}
	return err
}
