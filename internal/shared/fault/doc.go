// Package fault has the reason of a failure, and the advice about it.
//
// The code that fails returns a reason, which is one line, and writes the advice into the same
// expression:
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
// An advice stands at the end of the text of a wrapper, as fmt.Errorf("%s: %w", …) makes it. A
// type that composes its text of several errors, or hides one, has a method Tell; a wrapper with
// words of its own behind such an error takes the place of the advice in it.
package fault
