// Package dialect names the SQL engines that packages sqllock, fence and once know.
package dialect

import "fmt"

// A Dialect is the SQL of an engine.
type Dialect int

// The engines. There is no default.
const (
	Postgres  Dialect = iota + 1 // PostgreSQL
	MySQL                        // MySQL and MariaDB
	SQLite                       // SQLite
	SQLServer                    // SQL Server 2016 or later
)

// String returns the name of the engine.
func (d Dialect) String() string {
	switch d {
	case Postgres:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	case SQLServer:
		return "SQL Server"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}
