package pglock

import "testing"

// A release that names the lock of a key otherwise would hold the key beside this one.
func TestNamesOfLocksStay(t *testing.T) {
	t.Parallel()
	if got, want := lockID("key"), int64(2822290881906358315); got != want {
		t.Errorf("the lock of a transaction is %d, want %d", got, want)
	}
	conn := &sessionConn{apart: sequence{name: "public.holdfast_fence"}.apart()}
	if got, want := conn.number((&sessionServer{}).Name("key")), "\xba\x7a\x84\x50\xda\xb7\xf5\x19"; string(got) != want {
		t.Errorf("the lock of a session is %x, want %x", got, want)
	}
}
