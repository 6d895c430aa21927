# SPDX-License-Identifier: Apache-2.0
"""What a training job on a fleet would take, before anyone rents it.

    config     a Hugging Face configuration, or one of our own, as a Model
    size       its weights and FLOP, counted
    model      what one device computes (JAX)
    programs   its programs, lowered without data (JAX)
    machines   machines to rent and what is in them
    price      programs priced by the library, each once
    layout     how a model is cut over devices, and which cuts are possible
    compose    a step out of its parts: time, memory, dollars
    command    `opentrn predict`

JAX is imported by whoever prices a program that is not in the cache, not before.
"""
