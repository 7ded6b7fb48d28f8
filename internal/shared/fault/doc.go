// Package fault joins the reason for a failure with advice on what to do about it.
//
// The code that fails returns a one-line reason and adds the advice in the same expression:
//
//	fault.With(errors.New("the file is a tar archive"), "extract the state from it")
//
// A [Fact] is advice that each program may word in its own way, or information that decisions are based on.
// [Find] and [Has] look for a fact in an error; decisions never depend on the text of an error.
//
// Each program has a [Voice]. [Voice.Text] returns the message for an error, with each piece of advice after
// its reason. A word in braces, such as {settings}, is a placeholder that the voice fills in. The wording of
// the zero Voice is correct for every program.
//
// If the text of a wrapping error ends with the text of the wrapped error, as with fmt.Errorf("%s: %w", …),
// the advice follows directly; otherwise it follows the whole text. An error type that composes its text from
// several errors, or hides an error, has a Tell method. If such an error is wrapped by one that adds words
// after it, its advice is lost.
package fault
