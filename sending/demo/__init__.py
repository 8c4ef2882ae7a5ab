"""The demo: a campaign to a thousand invented people, a sender killed on the way, and the count.

``people`` invents the audience, ``stage`` puts accounts, logins and the campaign into the
database, ``children`` are the processes, ``screen`` tells what happens, ``report`` judges it
and ``scenario`` is the plot.
"""
