package sops

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/stores"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
)

// Limits for what a file may hold, checked before any key is used.
const (
	maxGroups    = 64
	maxKeys      = 128      // in all groups together
	maxWrapped   = 32 << 10 // bytes of an encrypted data key; one for many PGP keys takes some thousand
	maxName      = 16 << 10 // bytes of what names a key: its address, role, encryption context
	maxSelector  = 1024     // bytes of a regular expression
	maxSelecting = 30e6     // of its instructions × names that it is matched with
	keyLength    = 32       // bytes of a data key
)

// document is a file that was parsed, and later decrypted in place.
type document struct {
	tree      sops.Tree
	threshold int  // key groups that are needed
	binary    bool // sops encrypted the file as one value, whatever is in it
}

// load parses a file and checks everything that can be checked without a key.
func load(file []byte, partial bool) (*document, error) {
	branch, err := read(file)
	if err != nil {
		return nil, err
	}
	doc := &document{}
	if err := guard(func() error { return doc.extract(branch) }); err != nil {
		return nil, err
	}
	rest := doc.tree.Branches[0]
	if err := checkNames(rest, nil); err != nil {
		return nil, err
	}
	if !partial {
		if err := checkSealed(rest, nil); err != nil {
			return nil, err
		}
	}
	if isJSON(file) && len(rest) == 1 && rest[0].Key == "data" {
		_, doc.binary = rest[0].Value.(string)
	}
	return doc, doc.checkSelection(partial)
}

// extract takes the metadata out of the file's values.
func (d *document) extract(branch sops.TreeBranch) error {
	branches, metadata, err := stores.ExtractMetadata(sops.TreeBranches{branch}, stores.MetadataOpts{Flatten: stores.MetadataFlattenNone})
	if err != nil || len(branches) != 1 {
		// The reason may repeat what is in the file.
		return fmt.Errorf("%w: its sops metadata is missing or cannot be read", encryption.ErrDamaged)
	}
	d.tree = sops.Tree{Branches: branches, Metadata: metadata}
	return d.checkMetadata()
}

// guard turns a panic into an error: the library asserts types of what a
// stranger wrote, and cannot deal with a value of type:bytes.
func guard(work func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: sops cannot deal with it", encryption.ErrDamaged)
		}
	}()
	return work()
}

var sopsVersion = regexp.MustCompile(`^([0-9]{1,4})\.[0-9]+\.[0-9]+`)

// checkMetadata looks at the numbers in the metadata, none of which is
// authenticated.
func (d *document) checkMetadata() error {
	meta := &d.tree.Metadata
	version := sopsVersion.FindStringSubmatch(meta.Version)
	if version == nil {
		return fmt.Errorf("%w: it does not say which version of sops wrote it", encryption.ErrDamaged)
	}
	if major, _ := strconv.Atoi(version[1]); major > 3 {
		return fmt.Errorf("the file was written by sops %s; versions up to 3 are known here", quote(meta.Version))
	}
	if meta.MessageAuthenticationCode == "" {
		return errors.New("the file has no MAC: somebody changed the file")
	}
	groups := len(meta.KeyGroups)
	if groups > maxGroups || meta.MasterKeyCount() > maxKeys {
		return fmt.Errorf("the file names %d keys in %d key groups; at most %d in %d are read", meta.MasterKeyCount(), groups, maxKeys, maxGroups)
	}
	for i, group := range meta.KeyGroups {
		if len(group) == 0 {
			return fmt.Errorf("%w: its key group %d is empty", encryption.ErrDamaged, i+1)
		}
		for _, k := range group {
			if len(k.EncryptedDataKey()) > maxWrapped {
				return fmt.Errorf("the file holds an encrypted data key of %d bytes; at most %d are read", len(k.EncryptedDataKey()), maxWrapped)
			}
			if len(fmt.Sprintf("%+v", k.ToMap())) > maxWrapped+maxName {
				return fmt.Errorf("the file names a key in its key group %d by more than %d bytes", i+1, maxName)
			}
		}
	}
	// Shamir's method begins with two parts. Without a threshold, all are needed.
	d.threshold = meta.ShamirThreshold
	switch {
	case groups == 1:
		d.threshold = 1
	case d.threshold == 0:
		d.threshold = groups
	case d.threshold < 2 || d.threshold > groups:
		return fmt.Errorf("%w: it has %d key groups, and a threshold of %d", encryption.ErrDamaged, groups, d.threshold)
	}
	return nil
}

// checkNames refuses a name that differs from another in nothing but case,
// where one of them holds nothing: the MAC does not cover that, and a reader
// that ignores case could take it for the other. Only the names of the state
// format itself are checked, not those of tags, say.
func checkNames(value any, path []string) error {
	if list, ok := value.([]any); ok {
		for _, element := range list {
			if err := checkNames(element, path); err != nil {
				return err
			}
		}
	}
	branch, ok := value.(sops.TreeBranch)
	if !ok || len(path) > 2 {
		return nil
	}
	seen := map[string]bool{} // :: folded name → it holds something
	for _, item := range branch {
		name, _ := item.Key.(string)
		folded, content := strings.ToLower(strings.ToUpper(name)), hasContent(item.Value)
		if other, twice := seen[folded]; twice && !(other && content) {
			return fmt.Errorf("the file has %s twice, in different cases and once empty: somebody changed the file", at(append(path, name)))
		}
		seen[folded] = content
		if err := checkNames(item.Value, append(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// hasContent reports whether there is anything that the MAC covers.
func hasContent(value any) bool {
	switch v := value.(type) {
	case sops.TreeBranch:
		return slices.ContainsFunc(v, func(item sops.TreeItem) bool { return hasContent(item.Value) })
	case []any:
		return slices.ContainsFunc(v, hasContent)
	case string:
		return v != ""
	}
	return value != nil
}

// checkSealed checks that every value is encrypted, but for those that sops
// never encrypts: empty texts, null, and what is empty. The MAC is a hash of all
// values one after another: it does not say which was under which name.
func checkSealed(value any, path []string) error {
	switch v := value.(type) {
	case sops.TreeBranch:
		for _, item := range v {
			name, _ := item.Key.(string)
			if err := checkSealed(item.Value, append(path, name)); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for _, element := range v {
			if err := checkSealed(element, path); err != nil {
				return err
			}
		}
		return nil
	case nil:
		return nil
	case string:
		if v == "" || strings.HasPrefix(v, "ENC[") {
			return nil
		}
	}
	return fmt.Errorf("the value at %s is not encrypted, so anybody could have written it; "+
		"if sops was meant to leave it in clear, set allow_unencrypted_values = true", at(path))
}

// checkSelection deals with the rules for what stays unencrypted, which are in
// the file and not authenticated. Where every value must be encrypted there is
// nothing to select. Otherwise the library compiles a regular expression anew
// for each name on the way to each value, so that its cost is bounded here.
func (d *document) checkSelection(partial bool) error {
	meta := &d.tree.Metadata
	if !partial {
		meta.UnencryptedSuffix, meta.EncryptedSuffix, meta.UnencryptedRegex, meta.EncryptedRegex = "", "", "", ""
		meta.UnencryptedCommentRegex, meta.EncryptedCommentRegex = "", ""
		return nil
	}
	if meta.UnencryptedCommentRegex != "" || meta.EncryptedCommentRegex != "" {
		return errors.New("comments decide which values of the file are encrypted, which is not supported here; use encrypted_regex and the like")
	}
	for _, pattern := range []string{meta.UnencryptedRegex, meta.EncryptedRegex} {
		if pattern == "" {
			continue
		}
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil || len(pattern) > maxSelector {
			return fmt.Errorf("%w: it selects values by something that is not a regular expression, or a very long one", encryption.ErrDamaged)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil || float64(len(program.Inst))*float64(countNames(d.tree.Branches[0], 1)) > maxSelecting {
			return errors.New("the file selects its encrypted values by a regular expression that takes too long")
		}
	}
	return nil
}

// countNames counts the names on the ways to all values.
func countNames(value any, depth int) int {
	switch v := value.(type) {
	case sops.TreeBranch:
		n := 0
		for _, item := range v {
			n += countNames(item.Value, depth+1)
		}
		return n
	case []any:
		n := 0
		for _, element := range v {
			n += countNames(element, depth)
		}
		return n
	}
	return depth
}

// decrypt decrypts all values in place and compares the MAC.
func (d *document) decrypt(ctx context.Context, dataKey []byte) error {
	meta := &d.tree.Metadata
	own := &valueCipher{ctx: ctx, Cipher: aes.NewCipher()}
	var mac string
	err := guard(func() (err error) {
		mac, err = d.tree.Decrypt(dataKey, own)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case own.failed != "":
		return fmt.Errorf("the value at %s cannot be decrypted: somebody changed the file, or mixed up key groups", own.failed)
	case err != nil:
		return errors.New("the values of the file cannot be decrypted: they are not what sops writes")
	}
	var stored any
	err = guard(func() (err error) {
		stored, err = aes.NewCipher().Decrypt(meta.MessageAuthenticationCode, dataKey, meta.LastModified.Format(time.RFC3339))
		return err
	})
	if err != nil || stored != mac {
		return errors.New("the MAC of the file does not match its values: somebody changed the file")
	}
	return nil
}

// valueCipher is the library's cipher, which notes where it failed, and which
// ends with the context.
type valueCipher struct {
	sops.Cipher
	ctx    context.Context // the library has none
	failed string
}

func (c *valueCipher) Decrypt(sealed string, key []byte, path string) (any, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	value, err := c.Cipher.Decrypt(sealed, key, path)
	if err != nil {
		c.failed = at(strings.Split(strings.TrimSuffix(path, ":"), ":"))
	}
	return value, err
}

// at names a place in the file for a message.
func at(path []string) string { return quote(strings.Join(path, ".")) }

const maxText = 200 // bytes of a text of the file that are shown

func quote(text string) string { return outside.Quoted(text, maxText) }
