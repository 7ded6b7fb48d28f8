package meter

import "bytes"

const (
	// perMark is the cost of one mark for a parser of YAML: the node that it begins or ends, with
	// its tokens and events.
	perMark = 3

	// perDocument is the cost of a document, which has a parser of its own, with buffers.
	perDocument = 40
)

// YAML charges for everything that a parser can make of a document. The parser itself has no limit,
// and takes hundreds of bytes for each node. There is at most one node for each of the marks that
// are counted here. Marks inside of texts are counted as well, because an honest file has few.
func (m *Meter) YAML(text []byte) error {
	marks := 0
	for _, mark := range []byte("\n,:-?[{#&!") {
		marks += bytes.Count(text, []byte{mark})
	}
	if err := m.Charge(perDocument+perMark*int64(marks), "its YAML collections and values"); err != nil {
		return err
	}
	return m.tags(text)
}

// tags charges for the handles of tags. A handle stands for a text. Each tag is compared with all
// handles, and copies the text of its own.
func (m *Meter) tags(text []byte) error {
	const what = "the handles of its YAML tags"
	uses := int64(bytes.Count(text, []byte("%TAG"))) * int64(bytes.Count(text, []byte("!")))
	if err := m.Charge(uses, what); err != nil || uses == 0 { // so that the product below does not wrap around
		return err
	}
	return m.Charge(uses*int64(len(text))/64, what)
}
