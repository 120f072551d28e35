module github.com/holdfast-go/holdfast/schedlock

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.1.0
	github.com/robfig/cron/v3 v3.0.1
)
