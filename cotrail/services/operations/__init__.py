"""What can be asked of cotrail, over any transport: functions of services, each with its route over HTTP."""
