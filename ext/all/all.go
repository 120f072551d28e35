// Package all registers every store, for programs that take its URL from their
// users. Import it for that alone:
//
//	import _ "github.com/holdfast-go/holdfast/ext/all"
//
// A program that knows its store imports that store's package instead, and
// links no client that it does not use.
package all

import (
	_ "github.com/holdfast-go/holdfast/ext/etcdlock"
	_ "github.com/holdfast-go/holdfast/ext/memcachelock"
	_ "github.com/holdfast-go/holdfast/ext/mysqllock"
	_ "github.com/holdfast-go/holdfast/ext/pglock"
	_ "github.com/holdfast-go/holdfast/ext/redislock"
	_ "github.com/holdfast-go/holdfast/ext/sqlitelock"
	_ "github.com/holdfast-go/holdfast/ext/zklock"
	_ "github.com/holdfast-go/holdfast/filelock"
	_ "github.com/holdfast-go/holdfast/memlock"
	_ "github.com/holdfast-go/holdfast/redlock"
)
