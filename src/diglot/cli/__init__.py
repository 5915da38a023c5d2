"""The command line: `diglot serve | list | show | ps | run | pull | rm | stop | doctor`.

`main` is the entry, `verbs` holds one module a command, loaded when it is called. Commands about what a
server does speak HTTP to it as any client would; commands about what lies on disk act on the store.
"""
