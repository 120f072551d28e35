// Package mssqllock is a store in SQL Server.
package mssqllock
