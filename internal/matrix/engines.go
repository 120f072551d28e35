package main

// An engine is a kind of server.
type engine struct {
	name  string // as scripts/servers --matrix names it
	tests []suite
	start string // the store of "holdfast verify --start", "" for none
	url   string // of a look-alike: the store at an address, %s
}

// A suite is tests of a package.
type suite struct{ dir, run string }

// engines are in the order of the table.
var engines = []engine{
	{name: "redis", start: "redis", tests: []suite{{"redislock", "^Test(Contract|ContractInACluster|ContractBehindSentinels|URLsOfOthers|OpenWithPassword|NewPassword|Permissions|MissingPermission|MissingKeyPermission|LookingRights|OpenRefusesLiars|OpenRefusesSeveralServers|OpenRefusesSplitKeys|FailoverWhileProving)$"}}},
	{name: "memcached", start: "memcached", tests: []suite{{"memcachelock", "^Test(Contract|WarnsOfPlainPasswords|OpenErrors|TLS|NewPassword|RefusesLiars)$"}}},
	{name: "etcd", start: "etcd", tests: []suite{{"etcdlock", "^Test(Contract|LeastRights|LookingRights|IdleLogin|OpenTLS|OpenWithPassword|LoginExpires|NewPassword)$"}}},
	{name: "nats", start: "nats", tests: []suite{{"natslock", "^Test(Contract|OpenLogin|LoginRefused|Check|Rights|TLS|NewPassword)$"}}},
	{name: "s3", start: "s3", tests: []suite{{"s3lock", "^Test(Contract|OpenRefusesBucketsThatIgnoreConditions|NoCredentials|Rights|TLS|NewCredentials)$"}}},
	{name: "zookeeper", start: "zookeeper", tests: []suite{{"zklock", "^Test(Contract|TLS|LeastRights|Permissions|NewPassword)$"}}},
	{name: "postgres", start: "postgres", tests: []suite{{"pglock", "^Test(Contract|SessionContract|.*Rights|TLS|NotCreated|ListenerWithNewPassword|SessionWithNewPassword|WarnsOfPlainPasswords|SessionRefusesLiars)$"}}},
	{name: "pgbouncer", tests: []suite{{"pglock", "^Test(SessionRefusesPooler|TransactionLocks)$"}, {"proof/leases", "^TestPgBouncer$"}}},
	{name: "mariadb", start: "mariadb", tests: []suite{{"mysqllock", "^Test(Contract|SessionContract|.*Rights|TLS|NotCreated|NewPassword|SessionRefusesSeveralServers|SessionRefusesLiars|SessionRefusesPooler)$"}}},

	{name: "miniredis", url: "redis://%s"},
	{name: "go-mysql-server", url: "mysql://root@%s/locks"},
	{name: "kine", url: "etcd://%s"},
}
