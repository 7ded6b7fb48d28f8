// Package notice brings what a user should know at once, such as that a key wants to
// be touched, to where there is a place for it.
package notice

import "context"

type place struct{}

// With has show called with what should be known during work that has the context,
// from any goroutine.
func With(ctx context.Context, show func(text string)) context.Context {
	return context.WithValue(ctx, place{}, show)
}

// Show passes text on. Without a place for it, nothing happens.
func Show(ctx context.Context, text string) {
	if show, ok := ctx.Value(place{}).(func(string)); ok {
		show(text)
	}
}
