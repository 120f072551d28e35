module github.com/holdfast-go/holdfast/mysqllock

go 1.25.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/holdfast-go/holdfast v0.1.0
)

require filippo.io/edwards25519 v1.2.0 // indirect
