package single

import "database/sql"

func lock(db *sql.DB) error {
	db.SetMaxOpenConns(1)
	_, err := db.Exec("SELECT pg_advisory_lock(42)")
	return err
}
