// Package fault joins the reason of a failure with advice about it.
//
// The code that fails returns a reason, which is one line, and writes the advice into the same
// expression:
//
//	fault.With(errors.New("the file is a tar archive"), "extract the state from it")
//
// A [Fact] is advice that each program can put into words of its own, or the basis of a decision.
// [Find] and [Has] look for a fact; no decision depends on a text.
//
// A program has a [Voice]. [Voice.Text] returns the text of an error, with each piece of advice
// after its reason. A word in braces, such as {settings}, is a placeholder that the voice fills.
// The zero Voice has words that are true for every program.
//
// If the text of a wrapper ends with the text of the wrapped error, as fmt.Errorf("%s: %w", …)
// makes it, the advice comes there; otherwise it comes after the whole text. A type that composes
// its text of several errors, or hides one, has a method Tell. A wrapper that adds words after such
// an error leaves out its advice.
package fault
