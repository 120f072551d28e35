package main

// An engine is a kind of server.
type engine struct {
	name  string // as scripts/servers --matrix names it
	tests []suite
	start string // the store of "holdfast verify --start", "" for none
}

// A suite is tests of a package.
type suite struct{ dir, run string }

// engines are in the order of the table.
var engines = []engine{
	{"redis", []suite{{"redislock", "^Test(Contract|ContractInACluster|ContractBehindSentinels|OpenWithPassword|NewPassword|Permissions|MissingPermission|MissingKeyPermission)$"}}, "redis"},
	{"memcached", []suite{{"memcachelock", "^Test(Contract|WarnsOfPlainPasswords|OpenErrors)$"}}, "memcached"},
	{"etcd", []suite{{"etcdlock", "^Test(Contract|IdleLogin|OpenTLS|OpenWithPassword|LoginExpires|NewPassword)$"}}, "etcd"},
	{"zookeeper", []suite{{"zklock", "^Test(Contract|TLS|Permissions)$"}}, "zookeeper"},
	{"postgres", []suite{{"pglock", "^Test(Contract|SessionContract|.*Rights|TLS|NotCreated|ListenerWithNewPassword|SessionWithNewPassword|SessionRefusesLiars)$"}}, "postgres"},
	{"pgbouncer", []suite{{"pglock", "^Test(SessionRefusesPooler|TransactionLocks)$"}, {"proof/leases", "^TestPgBouncer$"}}, ""},
	{"mariadb", []suite{{"mysqllock", "^Test(Contract|SessionContract|.*Rights|TLS|NotCreated|NewPassword|SessionRefusesSeveralServers)$"}}, "mariadb"},
}
