package mssqllock

import "testing"

// A release that names the lock of a key otherwise would hold the key beside this one.
func TestNamesOfLocksStay(t *testing.T) {
	t.Parallel()
	if got, want := resource("key"), "holdfast tx LHDhK3oGRvkiefQnx7OOczTY5Tic_xZ6HcMOc_gmtoM"; got != want {
		t.Errorf("the lock of a transaction is %s, want %s", got, want)
	}
}
