package mysqllock

import (
	"testing"

	"github.com/go-sql-driver/mysql"
)

// A release that names the lock of a key otherwise would hold the key beside this one.
func TestNamesOfLocksStay(t *testing.T) {
	t.Parallel()
	s := &sessionServer{config: &mysql.Config{DBName: "app"}, table: "holdfast_fence"}
	if got, want := s.Name("key"), "65f4d1a11c043a692ec02123ad9aa396de22bc3a47aadf10"; got != want {
		t.Errorf("the lock of a session is %s, want %s", got, want)
	}
}
