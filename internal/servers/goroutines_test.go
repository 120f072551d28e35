package servers

import "testing"

func TestGoroutines(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	go func() { <-end }() // not begun by this test, as far as its count can tell
	count := Goroutines(t)
	if n := count(); n != 1 {
		t.Errorf("counted %d goroutines, want the test's own", n)
	}
	for range 3 {
		go func() {
			go func() { <-end }()
			<-end
		}()
	}
	Until(t, "seven goroutines", func() bool { return count() == 7 })
	close(end)
	Until(t, "the test's own goroutine", func() bool { return count() == 1 })
}
