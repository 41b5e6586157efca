"""What can be asked of cotrail, whichever the door: each operation is a function, and its route over HTTP."""
