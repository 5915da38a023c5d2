"""Models on somebody else's server: vLLM, SGLang, llama-server, another machine of one's own.

This is how a team outgrows one machine: how the models run there is that server's business. They are listed
next to the local ones and served in every protocol.
"""
