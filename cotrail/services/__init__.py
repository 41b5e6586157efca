"""Use cases behind the command line and the API, in four rooms: `results` over `runs` over `library` over `access`.

Services take typed requests and connections, raise `CotrailError`s, print nothing, and report progress by callbacks.
What can be asked of cotrail is an operation (`operations`): a function of the module that it concerns, with its route
and scope.
"""
