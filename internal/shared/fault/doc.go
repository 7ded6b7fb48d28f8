// Package fault says why something failed, and what to do about it.
//
// The code that fails returns a reason, which is one line that says what is so, and writes the
// advice into the same expression:
//
//	fault.With(errors.New("the file is a tar archive"), "extract the state from it")
//
// A [Fact] is an advice that each program has words of its own for, or that something is
// decided by. [Find] and [Has] look for one; nothing is decided by a text.
//
// A program has a [Voice]. [Voice.Text] is the text of an error with all advice in it, which
// stands behind its reason. A word in braces in an advice is a placeholder, such as {settings},
// that the voice fills. The zero Voice has words that are true for everybody.
//
// An error whose text ends with that of the error that it wraps, as fmt.Errorf("%s: %w", …)
// makes it, needs nothing more. [Errorf] is for a text in which more follows, and a type that
// composes its text of several errors has a method Tell.
package fault
