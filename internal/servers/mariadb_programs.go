package servers

import (
	"os"
	"path/filepath"
)

// mariaPrograms are the programs of MariaDB or MySQL.
type mariaPrograms struct {
	base    string // the folder of an installation that was chosen, else ""
	server  string
	install string // makes the data
}

// findMariaPrograms returns the programs of the installation $HOLDFAST_MARIADB, which has
// folders bin and sbin, else the installed programs of MariaDB. The chosen installation may
// be MySQL.
func findMariaPrograms(tb TB) mariaPrograms {
	tb.Helper()
	base := os.Getenv("HOLDFAST_MARIADB")
	if base == "" {
		return mariaPrograms{
			server:  Installed(tb, mariaPackage, "mariadbd"),
			install: Installed(tb, mariaPackage, "mariadb-install-db"),
		}
	}
	p := mariaPrograms{
		base:    base,
		server:  filepath.Join(base, "sbin", "mariadbd"),
		install: filepath.Join(base, "bin", "mariadb-install-db"),
	}
	if _, err := os.Stat(p.server); err != nil {
		p.server = filepath.Join(base, "sbin", mysqlServer)
		p.install = p.server
	}
	if _, err := os.Stat(p.server); err != nil {
		tb.Fatalf("HOLDFAST_MARIADB: %v: want the folder of an installation, such as /usr", err)
	}
	return p
}

// mysqlServer is the name of the server of MySQL.
const mysqlServer = "mysqld"

// mysql reports whether the programs are those of MySQL.
func (p mariaPrograms) mysql() bool { return filepath.Base(p.server) == mysqlServer }
