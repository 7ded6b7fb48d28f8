// Package notice passes messages that a user should see at once, such as a request to touch a
// key, to the program that can show them.
package notice

import "context"

type place struct{}

// With returns a context whose notices are passed to show, from any goroutine.
func With(ctx context.Context, show func(text string)) context.Context {
	return context.WithValue(ctx, place{}, show)
}

// Show passes text to the function in ctx. It does nothing if there is none.
func Show(ctx context.Context, text string) {
	if show, ok := ctx.Value(place{}).(func(string)); ok {
		show(text)
	}
}
