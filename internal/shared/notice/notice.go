// Package notice passes messages that the user should see immediately, such as a request to touch a security
// key, to the program that can show them.
package notice

import "context"

type place struct{}

// With returns a context whose notices are passed to show. The function may be called from any goroutine.
func With(ctx context.Context, show func(text string)) context.Context {
	return context.WithValue(ctx, place{}, show)
}

// Show passes text to the function in ctx. If there is none, Show does nothing.
func Show(ctx context.Context, text string) {
	if show, ok := ctx.Value(place{}).(func(string)); ok {
		show(text)
	}
}
