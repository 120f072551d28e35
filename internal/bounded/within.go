package bounded

import "context"

// Within returns what f returns. Once ctx has ended, Within returns the zero value unless f has
// returned, and f goes on in the background. If ctx cannot end, f runs in the goroutine of the caller.
func Within[T any](ctx context.Context, f func() T) (got T) {
	if ctx.Done() == nil {
		return f()
	}
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case got = <-done:
		return got
	case <-ctx.Done():
	}
	select {
	case got = <-done: // The end of ctx may be the reason for the result.
	default:
	}
	return got
}
