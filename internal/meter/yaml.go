package meter

import "bytes"

// perMark is what a parser of YAML spends on one mark: on the node that it begins
// or ends, its tokens and its events.
const perMark = 3

// YAML charges for all that a parser can make of a text. The parser itself counts
// nothing, and takes hundreds of bytes for each node. There is at most one for each
// of these marks. Those inside of texts are counted as well: an honest file has few.
func (m *Meter) YAML(text []byte) error {
	marks := 0
	for _, mark := range []byte("\n,:-?[{#&!") {
		marks += bytes.Count(text, []byte{mark})
	}
	return m.Charge(perMark*int64(marks), "its YAML collections and values")
}
