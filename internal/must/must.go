// Package must makes values for tests: if a constructor fails there, the test is wrong.
package must

// Get returns value, and panics with err unless err is nil.
func Get[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
