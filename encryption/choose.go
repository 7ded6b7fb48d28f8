package encryption

import "slices"

type candidate struct {
	method
	address    string
	broken     error // why the method cannot be built
	primary    bool
	plaintext  bool // it reads unencrypted data
	whole      bool // it is given the whole file, not the data of an envelope
	recognizes bool // the file has the method's own format
}

func (e *Encryption) candidate(address string, file []byte) candidate {
	m, err := e.methods[address]()
	f, own := m.Method.(FileMethod)
	plaintext := e.isPlaintext(address)
	return candidate{
		method: m, address: address, broken: err, plaintext: plaintext,
		whole: own || plaintext, recognizes: own && f.RecognizesFile(file),
	}
}

// choose returns the methods for this kind of file, in order. The envelope is
// nil if the file is not an envelope or is damaged.
func (t Target) choose(kind FileKind, file []byte, env *envelope) []candidate {
	if kind == Empty || kind == BackendRecord {
		return nil
	}
	var chosen []candidate
	recognized := false
	for i, address := range t.methods {
		c := t.encryption.candidate(address, file)
		c.primary = i == 0
		recognized = recognized || c.recognizes
		if c.suits(kind, env) {
			chosen = append(chosen, c)
		}
	}
	if recognized && kind == State {
		// The format keeps the shape of a state, as that of sops may. Without
		// the key, its values are not plaintext.
		chosen = slices.DeleteFunc(chosen, func(c candidate) bool { return c.plaintext })
	}
	return chosen
}

func (c candidate) suits(kind FileKind, env *envelope) bool {
	isPlain := kind == State || kind == Plan
	switch {
	case c.plaintext:
		return isPlain
	case c.broken != nil:
		return !isPlain // it cannot tell; its turn ends with the reason
	case c.whole:
		return c.recognizes
	}
	return env != nil
}

// recognizing returns the first configured method whose format the file has, or
// "".
func (e *Encryption) recognizing(file []byte) string {
	for _, address := range addresses(e.config.Methods) {
		if e.candidate(address, file).recognizes {
			return address
		}
	}
	return ""
}
