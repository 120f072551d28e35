// Package all registers every store, for programs whose users choose the store by URL.
// Import the package for the side effect only:
//
//	import _ "github.com/holdfast-go/holdfast/all"
//
// A program with a fixed store imports the package of the store instead, and links no
// unused clients.
package all

import (
	_ "github.com/holdfast-go/holdfast/azurelock"
	_ "github.com/holdfast-go/holdfast/dynamodblock"
	_ "github.com/holdfast-go/holdfast/etcdlock"
	_ "github.com/holdfast-go/holdfast/filelock"
	_ "github.com/holdfast-go/holdfast/gcslock"
	_ "github.com/holdfast-go/holdfast/memcachelock"
	_ "github.com/holdfast-go/holdfast/memlock"
	_ "github.com/holdfast-go/holdfast/mssqllock"
	_ "github.com/holdfast-go/holdfast/mysqllock"
	_ "github.com/holdfast-go/holdfast/natslock"
	_ "github.com/holdfast-go/holdfast/pglock"
	_ "github.com/holdfast-go/holdfast/redislock"
	_ "github.com/holdfast-go/holdfast/redlock"
	_ "github.com/holdfast-go/holdfast/s3lock"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
	_ "github.com/holdfast-go/holdfast/zklock"
)
