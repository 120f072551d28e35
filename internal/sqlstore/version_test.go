package sqlstore

import "testing"

func TestOldServers(t *testing.T) {
	for _, tt := range []struct {
		dialect         *Dialect
		version, oldest string
	}{
		{Postgres, "15.18 (Debian 15.18-0+deb12u1)", ""},
		{Postgres, "12.0", ""},
		{Postgres, "18beta1", ""},
		{Postgres, "11.22", "12"},
		{Postgres, "9.6.24", "12"},
		{MySQL, "8.0.36", ""},
		{MySQL, "8.4.0-log", ""},
		{MySQL, "9.1.0", ""},
		{MySQL, "5.7.44-log", "8.0"},
		{MySQL, "10.11.19-MariaDB-0+deb12u1", ""},
		{MySQL, "5.5.5-10.11.19-MariaDB", ""},
		{MySQL, "11.4.2-MariaDB-ubu2404", ""},
		{MySQL, "10.6.0-MariaDB", ""},
		{MySQL, "10.5.23-MariaDB-0+deb11u1", "MariaDB 10.6"},
		{SQLite, "3.46.1", ""},
		{SQLite, "3.38.0", ""},
		{SQLite, "3.37.2", "3.38"},
		{Postgres, "unknown", ""},
	} {
		if got := tt.dialect.needs.outdated(tt.version); got != tt.oldest {
			t.Errorf("%s %s is too old, says %q; want %q", tt.dialect, tt.version, got, tt.oldest)
		}
	}
}
