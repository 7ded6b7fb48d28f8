// Package drift compares our tables with the source of each version of Terraform and OpenTofu that we know.
package drift

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cli"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/provider"
	sources "github.com/statecrypt/terraform-provider-statecrypt/internal/source/all"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
)

// TestDrift compares with the source that the module proxy has; make drift runs it.
func TestDrift(t *testing.T) {
	if os.Getenv("STATECRYPT_DRIFT") == "" {
		t.Skip("make drift runs it")
	}
	known, found := ours(t), findings{}
	pinned := versions(t)
	for _, v := range newer(t, found, pinned) {
		theirs, err := read(&source{dir: v.download(t), module: v.module()})
		if err != nil {
			t.Errorf("%s: %v", v, err)
			continue
		}
		if slices.Contains(pinned, v) {
			theirs.help(t, root+".tools/bin/"+v.String())
		}
		known.compare(found, v.String(), theirs)
	}
	plugins := version{"terraform-plugin-go", newestPlugins(t), ""}
	calls, capabilities, err := protocol(filepath.Join(plugins.download(t), "tfprotov6/internal/tfplugin6/*.proto"))
	if err != nil {
		t.Fatal(err)
	}
	known.compare(found, plugins.String(), &theirs{calls: calls, capabilities: capabilities})

	text, err := os.ReadFile("exceptions.tsv")
	if err != nil {
		t.Fatal(err)
	}
	left, err := found.without(string(text))
	if err != nil {
		t.Error(err)
	}
	if len(left) > 0 {
		t.Errorf("nobody has looked at these %d; docs/maintaining.md says what to do:\n%s", len(left), strings.Join(left, "\n"))
	}
}

const root = "../../../"

// findings are the names that our tables do not have, such as "wrap plan: -out", each with the versions that have it.
type findings map[string][]string

// add adds the names of theirs that ours does not have.
func (f findings) add(version, subject string, theirs, ours []string) {
	for _, name := range theirs {
		key := subject + ": " + name
		if !slices.Contains(ours, name) && !slices.Contains(f[key], version) {
			f[key] = append(f[key], version)
		}
	}
}

// without returns the findings that are not among the exceptions: lines of a subject with names, a version that has
// them, and a reason. An exception that matches nothing is an error.
func (f findings) without(exceptions string) (left []string, err error) {
	rest := maps.Clone(f)
	for i, line := range strings.Split(strings.TrimSpace(exceptions), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "\t")
		subject, names, _ := strings.Cut(parts[0], ": ")
		if len(parts) != 3 || names == "" || parts[2] == "" {
			err = errors.Join(err, fmt.Errorf("exceptions.tsv:%d is not a subject with names, a version and a reason", i+1))
			continue
		}
		for name := range strings.FieldsSeq(names) {
			key := subject + ": " + name
			if !slices.Contains(rest[key], parts[1]) {
				err = errors.Join(err, fmt.Errorf("exceptions.tsv:%d: %s has no %q that our tables lack", i+1, parts[1], key))
			}
			delete(rest, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		left = append(left, key+" ("+strings.Join(rest[key], ", ")+")")
	}
	return left, err
}

// theirs has the names of a version.
type theirs struct {
	commands                        map[string]flags
	backends, keyProviders, methods map[string][]string
	apart                           []string // backends of which the module has no source
	members, calls, capabilities    []string
}

// read returns the names that the source of a version has.
func read(s *source) (*theirs, error) {
	s, err := newSource(s.dir, s.module)
	if err != nil {
		return nil, err
	}
	t := &theirs{}
	var wrong [6]error
	t.commands, wrong[0] = s.commands()
	t.backends, wrong[1] = s.backends()
	t.members, wrong[2] = s.members()
	t.calls, t.capabilities, wrong[3] = protocol(filepath.Join(s.dir, "docs/plugin-protocol/tfplugin6*.proto"))
	if strings.HasPrefix(s.module, "github.com/opentofu/") {
		t.keyProviders, wrong[4] = s.kinds("keyprovider")
		t.methods, wrong[5] = s.kinds("method")
	}
	data, err := os.ReadFile(filepath.Join(s.dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	for _, m := range regexp.MustCompile(`=> \./internal/backend/remote-state/(\w+)`).FindAllStringSubmatch(string(data), -1) {
		t.apart = append(t.apart, m[1])
	}
	return t, errors.Join(wrong[:]...)
}

// tables have the names that we know.
type tables struct {
	commands              map[string]string // :: name → flags
	refused               map[string]string // :: name → why
	refusedFlags          []cli.Mistake
	sources, stores       map[string][]string // :: name of a backend → arguments
	keyProviders, methods map[string][]string
	members               map[string][]string // :: type of OpenTofu's package statefile → members that we read
	calls                 []string
	capabilities          map[string][]string // :: type of terraform-plugin-go → capabilities
}

// ours returns our tables, by the functions that the programs themselves read them with.
func ours(t *testing.T) *tables {
	o := &tables{
		sources: map[string][]string{}, stores: map[string][]string{}, keyProviders: map[string][]string{}, methods: map[string][]string{},
		capabilities: map[string][]string{},
	}
	o.commands, o.refusedFlags, o.refused = cmdline.Known()
	for _, kind := range sources.Kinds() {
		o.sources[kind.Name] = slices.Concat(leaves("", kind.Attrs), leaves("", kind.Credentials.Attrs))
	}
	for _, kind := range stores.Kinds() {
		o.stores[kind.Name] = leaves("", kind.Attrs)
	}
	keyProviders, methods := unstable.Tables(builtin.Registry())
	for _, table := range keyProviders {
		o.keyProviders[table.Name] = flat(table.Attrs)
	}
	for _, table := range methods {
		o.methods[table.Name] = flat(table.Attrs)
	}
	o.members = map[string][]string{
		"stateV4":               append(literals(t, "encryption", "isOfState"), literals(t, "encryption/tfstate", "parseDocument")...),
		"outputStateV4":         literals(t, "encryption/tfstate", "readEntry4"),
		"resourceStateV4":       literals(t, "encryption/tfstate", "readResource"),
		"instanceObjectStateV4": literals(t, "encryption/tfstate", "readInstance"),
	}
	server := reflect.TypeFor[*provider.Server]()
	for i := range server.NumMethod() {
		method := server.Method(i)
		o.calls = append(o.calls, method.Name)
		for at := range method.Type.NumIn() {
			maps.Copy(o.capabilities, capabilitiesIn(method.Type.In(at)))
		}
		for at := range method.Type.NumOut() {
			maps.Copy(o.capabilities, capabilitiesIn(method.Type.Out(at)))
		}
	}
	return o
}

// capabilitiesIn returns the capabilities that a message of the protocol can hold, by the names of their types.
func capabilitiesIn(message reflect.Type) map[string][]string {
	names := map[string][]string{}
	if message.Kind() != reflect.Pointer || message.Elem().Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(message.Elem()) {
		if !strings.HasSuffix(field.Name, "Capabilities") {
			continue
		}
		for _, capability := range reflect.VisibleFields(field.Type.Elem()) {
			name := field.Type.Elem().Name()
			names[name] = append(names[name], snake(capability.Name))
		}
	}
	return names
}

// compare adds the names that a version has and our tables have not.
func (o *tables) compare(f findings, version string, t *theirs) {
	for name, has := range t.commands {
		row := cli.Command[struct{}]{Name: name, Flags: o.commands[name]}
		switch {
		case o.isRefused(name):
			continue
		case row.Flags == "":
			f.add(version, "wrap", []string{name}, nil)
			continue
		}
		for flag, takes := range has {
			switch subject := "wrap " + name; {
			case !row.HasFlag(flag) && row.Meant(flag, o.refusedFlags) == "":
				f.add(version, subject, []string{"-" + flag}, nil)
			case row.HasFlag(flag) && takes != "?" && (takes == "=") != row.TakesValue(flag):
				f.add(version, subject+", whose value is not as in the table", []string{"-" + flag}, nil)
			}
		}
	}
	for _, pair := range []struct {
		what         string
		theirs, ours map[string][]string
	}{{"key provider", t.keyProviders, o.keyProviders}, {"method", t.methods, o.methods}} {
		for name, arguments := range pair.theirs {
			if _, ok := pair.ours[name]; !ok {
				f.add(version, pair.what, []string{name}, nil)
				continue
			}
			f.add(version, pair.what+" "+name, arguments, pair.ours[name])
		}
	}
	for name, arguments := range t.backends {
		o.compareBackend(f, version, name, arguments)
	}
	f.add(version, "backend without source", t.apart, nil)
	for _, member := range t.members {
		of, name, _ := strings.Cut(member, " ")
		f.add(version, of, []string{name}, o.members[of])
	}
	f.add(version, "protocol", t.calls, o.calls)
	for _, capability := range t.capabilities {
		message, name, _ := strings.Cut(capability, " ")
		var known []string
		for of, has := range o.capabilities { // such as ReadDataSourceClientCapabilities, for ClientCapabilities
			if strings.HasSuffix(of, message) {
				known = append(known, has...)
			}
		}
		f.add(version, message, []string{name}, known)
	}
}

// compareBackend adds the arguments that our source or our store lacks: of "backend s3" those that both lack.
func (o *tables) compareBackend(f findings, version, name string, arguments []string) {
	source, isSource := o.sources[name]
	store, isStore := o.stores[name]
	switch {
	case !isSource:
		f.add(version, "backend", []string{name}, nil)
		return
	case !isStore:
		f.add(version, "store", []string{name}, nil)
		f.add(version, "backend "+name, arguments, source)
		return
	}
	f.add(version, "backend "+name, arguments, append(slices.Clone(source), store...))
	for _, argument := range arguments {
		switch {
		case slices.Contains(store, argument):
			f.add(version, "source "+name, []string{argument}, source)
		case slices.Contains(source, argument):
			f.add(version, "store "+name, []string{argument}, nil)
		}
	}
}

// isRefused reports whether a command without a row is refused by name, as all that begin with a word may be, or for
// the lack of a second word.
func (o *tables) isRefused(name string) bool {
	if o.commands[name] != "" {
		return false
	}
	first, _, _ := strings.Cut(name, " ")
	if o.refused[name] != "" || o.refused[first] != "" {
		return true
	}
	for row := range o.commands {
		if strings.HasPrefix(row, name+" ") {
			return true
		}
	}
	return false
}

// leaves returns the names of attributes, in a block behind the name of the block.
func leaves(prefix string, attrs []attr.Attr) (names []string) {
	for _, a := range attrs {
		if a.Attrs == nil {
			names = append(names, prefix+a.Name)
		}
		names = append(names, leaves(prefix+a.Name+".", a.Attrs)...)
	}
	return names
}

// flat returns the names of attributes and blocks, without the names of the blocks around them.
func flat(attrs []attr.Attr) (names []string) {
	for _, a := range attrs {
		names = append(append(names, a.Name), flat(a.Attrs)...)
	}
	return names
}

// snake writes a name of Go as protocols do.
func snake(name string) string {
	var b bytes.Buffer
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}
