"""Mail providers behind django-anymail: what each can do (``table``) and what its errors mean."""
